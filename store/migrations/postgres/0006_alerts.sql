-- Transitions of findings that receivers are to be told of, in the order of
-- commits: seq is given away by outbox_head, number is what receivers see. receivers are the names of all that
-- ever had it to be told, one a line, so that it is not told twice. spent is when
-- nobody needed it any more; finding and lock_key are empty from then on.
CREATE TABLE alert_events (
    seq         BIGINT PRIMARY KEY,
    event_id    TEXT NOT NULL,
    number      BIGINT NOT NULL,
    target      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at          BIGINT NOT NULL,
    survey      BIGINT NOT NULL,
    lock_key    BYTEA NOT NULL,
    finding     TEXT NOT NULL,
    status      TEXT NOT NULL,
    receivers   TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    spent       BIGINT NOT NULL
);

CREATE UNIQUE INDEX alert_events_id ON alert_events (event_id);
CREATE INDEX alert_events_fingerprint ON alert_events (fingerprint);
CREATE INDEX alert_events_spent ON alert_events (spent) WHERE spent > 0;

-- What is to be told to a receiver with the next message of a group, and why it was
-- held back before.
CREATE TABLE alert_pending (
    receiver TEXT NOT NULL,
    grp      TEXT NOT NULL,
    seq      BIGINT NOT NULL,
    held     TEXT NOT NULL,
    PRIMARY KEY (receiver, grp, seq)
);

CREATE INDEX alert_pending_seq ON alert_pending (seq);
CREATE INDEX alert_pending_held ON alert_pending (receiver, grp) WHERE held <> '';

-- When a group is to be looked at, 0 for not before something new is written, and
-- when its last message was written.
CREATE TABLE alert_groups (
    receiver TEXT NOT NULL,
    grp      TEXT NOT NULL,
    due_at   BIGINT NOT NULL,
    last_at  BIGINT NOT NULL,
    PRIMARY KEY (receiver, grp)
);

CREATE INDEX alert_groups_due ON alert_groups (receiver, due_at);

-- What a receiver knows to fire, and the event that told it last.
CREATE TABLE alert_told (
    receiver    TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    grp         TEXT NOT NULL,
    seq         BIGINT NOT NULL,
    survey      BIGINT NOT NULL,
    PRIMARY KEY (receiver, fingerprint)
);

CREATE INDEX alert_told_group ON alert_told (receiver, grp);
CREATE INDEX alert_told_seq ON alert_told (seq);

-- Who wanted silence about what, until when and why. One that was ended early has
-- ended_at. fingerprint is that of the one finding that was accepted.
CREATE TABLE silences (
    id          TEXT PRIMARY KEY,
    matchers    TEXT NOT NULL,
    comment     TEXT NOT NULL,
    created_by  TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    starts_at   BIGINT NOT NULL,
    ends_at     BIGINT NOT NULL,
    ended_by    TEXT NOT NULL,
    ended_at    BIGINT NOT NULL,
    fingerprint TEXT NOT NULL
);

CREATE INDEX silences_ends ON silences (ends_at);

-- Rows that come and go with every message are cleaned by the number of changes.
ALTER TABLE alert_events SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE alert_pending SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE alert_told SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE alert_groups SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
