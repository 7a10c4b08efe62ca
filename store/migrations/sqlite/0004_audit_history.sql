-- Places of the audit chain to which an agent put its name. An empty key_id is no
-- signature.
CREATE TABLE checkpoints (
    seq       INTEGER PRIMARY KEY,
    hash      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    key_id    TEXT NOT NULL,
    signature TEXT NOT NULL
);

-- How far each receiver of the live trail is: the last entry and the last
-- checkpoint that it got, and how many entries retention took before it.
CREATE TABLE sinks (
    name       TEXT PRIMARY KEY,
    seq        INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL,
    missed     INTEGER NOT NULL
);

-- Lines of files that were imported into the trail, by the hash of each.
CREATE TABLE imported (
    line TEXT PRIMARY KEY,
    seq  INTEGER NOT NULL
);

CREATE INDEX entries_actor ON entries (actor, seq);
CREATE INDEX entries_action ON entries (action, seq);
CREATE INDEX entries_target ON entries (target, seq);

-- What happened to locks: holds that ended (kind is how), and findings that
-- changed (kind is to what). n is the order in which it was written.
CREATE TABLE lock_events (
    n        INTEGER PRIMARY KEY,
    target   TEXT NOT NULL,
    db       INTEGER NOT NULL,
    lock_key BLOB NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    event    TEXT NOT NULL
);

CREATE INDEX lock_events_key ON lock_events (target, db, lock_key, n);
CREATE INDEX lock_events_at ON lock_events (at);
