-- The order in which requests were made: the ids are random, and two can be of
-- one microsecond.
ALTER TABLE requests ADD COLUMN n BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX requests_n ON requests (n);
CREATE INDEX requests_finished ON requests (finished_at);

-- The last entry that retention took away: the chain begins behind it.
ALTER TABLE entries_head ADD COLUMN base_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE entries_head ADD COLUMN base_hash TEXT NOT NULL DEFAULT '';
CREATE INDEX entries_at ON entries (at);

-- Notifications for receivers, in the order of commits. Times are of the database's
-- clock. A claim belongs to one sender until claimed_until.
CREATE TABLE outbox (
    seq           BIGINT PRIMARY KEY,
    id            TEXT NOT NULL,
    receiver      TEXT NOT NULL,
    ordering      TEXT NOT NULL,
    event_id      TEXT NOT NULL,
    target        TEXT NOT NULL,
    body          BYTEA NOT NULL,
    state         TEXT NOT NULL, -- waiting, delivered, dead
    attempts      BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    claim         TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    done_at       BIGINT NOT NULL,
    last_error    TEXT NOT NULL
);

CREATE UNIQUE INDEX outbox_id ON outbox (id);
CREATE INDEX outbox_waiting ON outbox (receiver, seq) WHERE state = 'waiting';
CREATE INDEX outbox_order ON outbox (receiver, ordering, seq) WHERE state = 'waiting';
CREATE INDEX outbox_done ON outbox (state, done_at);

-- One row: the last seq that was used, also when its notification is gone.
CREATE TABLE outbox_head (
    id  BIGINT PRIMARY KEY,
    seq BIGINT NOT NULL
);

INSERT INTO outbox_head (id, seq) VALUES (1, 0);

-- Which process works on a target. The row stays when nobody does: fence only
-- grows.
CREATE TABLE leases (
    target     TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    address    TEXT NOT NULL,
    fence      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- Few rows that change all the time: they are cleaned by the number of changes,
-- and leave room for the next version of a row on its page.
ALTER TABLE leases SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE entries_head SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE outbox_head SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.05);
