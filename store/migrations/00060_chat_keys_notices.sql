-- +goose Up
-- open are turns under way: messages of what a person said, until answered.
CREATE TABLE messages (
    id      TEXT NOT NULL UNIQUE,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    turn    TEXT NOT NULL,
    open    INTEGER NOT NULL,
    started INTEGER NOT NULL,
    body    TEXT NOT NULL,
    UNIQUE (sandbox, number)
) STRICT;
CREATE UNIQUE INDEX messages_open ON messages (sandbox) WHERE open = 1;

-- Only the hash of a key is kept.
CREATE TABLE keys (
    id      TEXT NOT NULL UNIQUE,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    hash    BLOB NOT NULL UNIQUE,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX keys_by_sandbox ON keys (sandbox);

-- What was asked for with a key on a day (UTC).
CREATE TABLE key_use (
    key          TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    day          TEXT NOT NULL,
    sandbox      TEXT NOT NULL,
    requests     INTEGER NOT NULL,
    refused      INTEGER NOT NULL,
    input        INTEGER NOT NULL,
    cache_writes INTEGER NOT NULL,
    cache_reads  INTEGER NOT NULL,
    output       INTEGER NOT NULL,
    dollars      REAL NOT NULL,
    last         INTEGER NOT NULL,
    UNIQUE (key, day)
) STRICT;
CREATE INDEX key_use_by_sandbox ON key_use (sandbox, day);

CREATE TABLE notices (
    num  INTEGER PRIMARY KEY AUTOINCREMENT,
    id   TEXT NOT NULL UNIQUE,
    open INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX notices_open ON notices (num) WHERE open = 1;
