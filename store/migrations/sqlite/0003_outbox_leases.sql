-- The order in which requests were made: the ids are random, and two can be of
-- one microsecond.
ALTER TABLE requests ADD COLUMN n INTEGER NOT NULL DEFAULT 0;
UPDATE requests SET n = rowid;
CREATE UNIQUE INDEX requests_n ON requests (n);
CREATE INDEX requests_finished ON requests (finished_at);

-- The last entry that retention took away: the chain begins behind it.
ALTER TABLE entries_head ADD COLUMN base_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries_head ADD COLUMN base_hash TEXT NOT NULL DEFAULT '';
CREATE INDEX entries_at ON entries (at);

-- Notifications for receivers, in the order of commits. Times are of the database's
-- clock. A claim belongs to one sender until claimed_until.
CREATE TABLE outbox (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL,
    receiver      TEXT NOT NULL,
    ordering      TEXT NOT NULL,
    event_id      TEXT NOT NULL,
    target        TEXT NOT NULL,
    body          BLOB NOT NULL,
    state         TEXT NOT NULL, -- waiting, delivered, dead
    attempts      INTEGER NOT NULL,
    next_at       INTEGER NOT NULL,
    claim         TEXT NOT NULL,
    claimed_until INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    done_at       INTEGER NOT NULL,
    last_error    TEXT NOT NULL
);

CREATE UNIQUE INDEX outbox_id ON outbox (id);
CREATE INDEX outbox_waiting ON outbox (receiver, seq) WHERE state = 'waiting';
CREATE INDEX outbox_order ON outbox (receiver, ordering, seq) WHERE state = 'waiting';
CREATE INDEX outbox_done ON outbox (state, done_at);

-- One row: the last seq that was used, also when its notification is gone.
CREATE TABLE outbox_head (
    id  INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
);

INSERT INTO outbox_head (id, seq) VALUES (1, 0);

-- Which process works on a target. The row stays when nobody does: fence only
-- grows.
CREATE TABLE leases (
    target     TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    address    TEXT NOT NULL,
    fence      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
