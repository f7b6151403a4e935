-- +goose Up
-- A sandbox that is leaving has given its place in the pool to another.
ALTER TABLE sandboxes ADD COLUMN leaving INTEGER NOT NULL DEFAULT 0;

CREATE TABLE sessions (
    id      TEXT NOT NULL UNIQUE,
    sandbox TEXT NOT NULL,
    open    INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;
-- Two sessions never share a sandbox.
CREATE UNIQUE INDEX sessions_by_sandbox ON sessions (sandbox) WHERE open = 1 AND sandbox <> '';
CREATE INDEX sessions_open ON sessions (open) WHERE open = 1;

-- What the pool did, since the data directory was made.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
