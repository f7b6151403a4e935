-- +goose Up
CREATE TABLE incidents (
    num    INTEGER PRIMARY KEY AUTOINCREMENT,
    id     TEXT NOT NULL UNIQUE,
    open   INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    body   TEXT NOT NULL
) STRICT;
CREATE INDEX incidents_open ON incidents (open) WHERE open = 1;

ALTER TABLE runs ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_by_fingerprint ON runs (fingerprint, started) WHERE fingerprint <> '';

-- What models have used, by day and sandbox. It stays when the sandbox goes:
-- the fleet's day has still cost it.
CREATE TABLE used (
    day      TEXT NOT NULL,
    sandbox  TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    steps    INTEGER NOT NULL,
    time     INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    dollars  REAL NOT NULL,
    PRIMARY KEY (day, sandbox)
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    run     TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX notes_by_sandbox ON notes (sandbox, run);

-- What a plan would write; the run says in words and as a diff what it is.
CREATE TABLE plans (
    run  TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
