-- +goose Up
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES ('epoch', '1'), ('audit_horizon', '0');

-- AUTOINCREMENT, so that a number is never issued twice, however much is pruned.
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    time    INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    by_kind TEXT NOT NULL,
    by_name TEXT NOT NULL,
    by_from TEXT NOT NULL,
    action  TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT;

CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Columns are what is asked for; body is the row whole. seq stands outside of
-- it, so that a row that did not change has the same body.
CREATE TABLE sandboxes (
    id    TEXT NOT NULL UNIQUE,
    name  TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    body  TEXT NOT NULL
) STRICT;

CREATE TABLE processes (
    id      TEXT NOT NULL UNIQUE,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    held    INTEGER NOT NULL,
    live    INTEGER NOT NULL,
    port    INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX processes_by_sandbox ON processes (sandbox);
CREATE INDEX processes_held ON processes (held) WHERE held = 1;
CREATE INDEX processes_live ON processes (live) WHERE live = 1;

CREATE TABLE signals (
    id      INTEGER PRIMARY KEY,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    at      INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX signals_by_sandbox ON signals (sandbox, id);

CREATE TABLE runs (
    num     INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT NOT NULL UNIQUE,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    open    INTEGER NOT NULL,
    started INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX runs_by_sandbox ON runs (sandbox, num);
-- A sandbox has one open run at most.
CREATE UNIQUE INDEX runs_open ON runs (sandbox) WHERE open = 1;

CREATE TABLE attempts (
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body   TEXT NOT NULL,
    UNIQUE (run, number)
) STRICT;

CREATE TABLE steps (
    run     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    body    TEXT NOT NULL,
    UNIQUE (run, attempt, number)
) STRICT;

CREATE TABLE checkpoints (
    id      TEXT NOT NULL UNIQUE,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    created INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX checkpoints_by_sandbox ON checkpoints (sandbox, created);

-- The healer's events, kept after the journal's ring has moved on. They stay
-- when their sandbox is removed.
CREATE TABLE history (
    seq     INTEGER PRIMARY KEY,
    time    INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    by_kind TEXT NOT NULL,
    by_name TEXT NOT NULL,
    by_from TEXT NOT NULL,
    action  TEXT NOT NULL,
    sandbox TEXT NOT NULL,
    run     TEXT NOT NULL,
    attempt INTEGER,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX history_by_sandbox ON history (sandbox, seq);
CREATE INDEX history_by_run ON history (run, seq) WHERE run <> '';

CREATE TABLE receipts (
    action TEXT NOT NULL UNIQUE,
    at     INTEGER NOT NULL,
    body   TEXT NOT NULL
) STRICT;
CREATE INDEX receipts_by_age ON receipts (at);

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    action  TEXT NOT NULL,
    kind    TEXT NOT NULL,
    subject TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, id);

-- +goose StatementBegin
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- Pruning by age moves the horizon first, in the same transaction.
-- +goose StatementBegin
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
WHEN OLD.at >= (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'audit_horizon')
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

CREATE TABLE tokens (
    name    TEXT PRIMARY KEY,
    hash    BLOB NOT NULL UNIQUE,
    role    TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    revoked INTEGER NOT NULL,
    used    INTEGER NOT NULL
) STRICT;
