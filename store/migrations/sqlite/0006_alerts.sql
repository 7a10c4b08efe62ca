-- Transitions of findings that receivers are notified of, in the order of commits: seq
-- comes from outbox_head, number is what receivers see. receivers are the names of all
-- that have or had the event, one a line, so that none is notified twice. done_at is
-- when no receiver needed it any more; finding and lock_key are empty from then on.
CREATE TABLE alert_events (
    seq         INTEGER PRIMARY KEY,
    event_id    TEXT NOT NULL,
    number      INTEGER NOT NULL,
    target      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at          INTEGER NOT NULL,
    survey      INTEGER NOT NULL,
    lock_key    BLOB NOT NULL,
    finding     TEXT NOT NULL,
    status      TEXT NOT NULL,
    receivers   TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    done_at     INTEGER NOT NULL
);

CREATE UNIQUE INDEX alert_events_id ON alert_events (event_id);
CREATE INDEX alert_events_fingerprint ON alert_events (fingerprint);
CREATE INDEX alert_events_done ON alert_events (done_at) WHERE done_at > 0;

-- Events that wait for the next notification of a receiver's group, and why they are
-- held back.
CREATE TABLE alert_pending (
    receiver  TEXT NOT NULL,
    group_key TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    held      TEXT NOT NULL,
    PRIMARY KEY (receiver, group_key, seq)
) WITHOUT ROWID;

CREATE INDEX alert_pending_seq ON alert_pending (seq);
CREATE INDEX alert_pending_held ON alert_pending (receiver, group_key) WHERE held <> '';

-- When a group is due, 0 for not before an event is written, and when its last
-- notification was written.
CREATE TABLE alert_groups (
    receiver  TEXT NOT NULL,
    group_key TEXT NOT NULL,
    due_at    INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    PRIMARY KEY (receiver, group_key)
) WITHOUT ROWID;

CREATE INDEX alert_groups_due ON alert_groups (receiver, due_at);

-- Findings that a receiver knows to fire, and the event that it was notified of last.
CREATE TABLE alert_delivery_state (
    receiver    TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    group_key   TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    survey      INTEGER NOT NULL,
    PRIMARY KEY (receiver, fingerprint)
) WITHOUT ROWID;

CREATE INDEX alert_delivery_state_group ON alert_delivery_state (receiver, group_key);
CREATE INDEX alert_delivery_state_seq ON alert_delivery_state (seq);

-- Silences: what is silenced, by whom, until when and why. One that was ended early has
-- ended_at. fingerprint is that of the one finding that was accepted.
CREATE TABLE silences (
    id          TEXT PRIMARY KEY,
    matchers    TEXT NOT NULL,
    comment     TEXT NOT NULL,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    starts_at   INTEGER NOT NULL,
    ends_at     INTEGER NOT NULL,
    ended_by    TEXT NOT NULL,
    ended_at    INTEGER NOT NULL,
    fingerprint TEXT NOT NULL
);

CREATE INDEX silences_ends ON silences (ends_at);
