-- Times are microseconds since 1970 (UTC), 0 for "not yet". Keys of locks are bytes, not
-- text. Tokens of locks are stored nowhere.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- n is the order of creation: IDs are random, and two requests can have the same time.
CREATE TABLE requests (
    id             TEXT PRIMARY KEY,
    n              INTEGER NOT NULL,
    state          TEXT NOT NULL,
    target         TEXT NOT NULL,
    db             INTEGER NOT NULL,
    lock_key       BLOB NOT NULL,
    evidence       TEXT NOT NULL,
    evidence_hash  TEXT NOT NULL,
    requester      TEXT NOT NULL,
    reason         TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    approved_until INTEGER NOT NULL,
    finished_at    INTEGER NOT NULL,
    outcome        TEXT NOT NULL,
    waiters_woken  INTEGER NOT NULL
);

CREATE UNIQUE INDEX requests_open ON requests (target, db, lock_key)
    WHERE state IN ('pending', 'approved', 'executing');
CREATE INDEX requests_key ON requests (target, db, lock_key, created_at);
CREATE INDEX requests_state ON requests (state, created_at);
CREATE UNIQUE INDEX requests_n ON requests (n);
CREATE INDEX requests_finished ON requests (finished_at);

CREATE TABLE decisions (
    request_id    TEXT NOT NULL REFERENCES requests (id),
    n             INTEGER NOT NULL,
    decided_by    TEXT NOT NULL,
    approve       INTEGER NOT NULL,
    reason        TEXT NOT NULL,
    decided_at    INTEGER NOT NULL,
    evidence_hash TEXT NOT NULL,
    PRIMARY KEY (request_id, n)
);

-- The audit trail.
CREATE TABLE entries (
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    target    TEXT NOT NULL,
    lock_key  BLOB NOT NULL,
    subject   TEXT NOT NULL,
    reason    TEXT NOT NULL,
    outcome   TEXT NOT NULL,
    detail    BLOB NOT NULL,
    prev_hash TEXT NOT NULL,
    hash      TEXT NOT NULL
);

CREATE INDEX entries_subject ON entries (subject, seq);
CREATE INDEX entries_key ON entries (lock_key, seq);
CREATE INDEX entries_at ON entries (at);
CREATE INDEX entries_actor ON entries (actor, seq);
CREATE INDEX entries_action ON entries (action, seq);
CREATE INDEX entries_target ON entries (target, seq);

-- One row: the last entry, so that a truncated trail is detected, and the last entry that
-- retention deleted, which the chain continues.
CREATE TABLE entries_head (
    id        INTEGER PRIMARY KEY,
    seq       INTEGER NOT NULL,
    hash      TEXT NOT NULL,
    base_seq  INTEGER NOT NULL,
    base_hash TEXT NOT NULL
);

INSERT INTO entries_head (id, seq, hash, base_seq, base_hash) VALUES (1, 0, '', 0, '');

-- Signed places of the audit chain. An empty key_id means that there is no signature.
CREATE TABLE checkpoints (
    seq       INTEGER PRIMARY KEY,
    hash      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    key_id    TEXT NOT NULL,
    signature TEXT NOT NULL
);

-- The progress of each audit sink: the last entry and the last checkpoint that it got, and
-- how many entries retention deleted before it got them.
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

-- Since when each lock is known.
CREATE TABLE history (
    target       TEXT NOT NULL,
    db           INTEGER NOT NULL,
    lock_key     BLOB NOT NULL,
    token_digest TEXT NOT NULL,
    first_seen   INTEGER NOT NULL,
    last_seen    INTEGER NOT NULL,
    renewals     INTEGER NOT NULL,
    last_renewal INTEGER NOT NULL,
    renew_every  INTEGER NOT NULL, -- nanoseconds
    expire_at    INTEGER NOT NULL, -- ms since 1970, server time
    claim_id     TEXT NOT NULL,
    PRIMARY KEY (target, db, lock_key)
);

CREATE INDEX history_last_seen ON history (last_seen);

CREATE TABLE findings (
    target      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    lock_key    BLOB NOT NULL,
    finding     TEXT NOT NULL,
    PRIMARY KEY (target, fingerprint)
);

-- How the locks of a class were held in one hour: counts and the longest holds, as package
-- internal/report encodes them.
CREATE TABLE holds (
    target TEXT NOT NULL,
    class  TEXT NOT NULL,
    slot   INTEGER NOT NULL,
    stats  TEXT NOT NULL,
    PRIMARY KEY (target, class, slot)
);

CREATE INDEX holds_slot ON holds (slot);

-- Holds that ended and findings that changed; kind is how. n is the order of writing.
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
-- What fired lately, on any lock.
CREATE INDEX lock_events_fired ON lock_events (at) WHERE kind = 'firing';

-- Messages to receivers in the order of commits. Times are of the database's clock. A claim
-- is one sender's until claimed_until. A message is at least as urgent (higher is sent
-- first) as those that wait behind it.
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
    last_error    TEXT NOT NULL,
    urgency       INTEGER NOT NULL
);

CREATE UNIQUE INDEX outbox_id ON outbox (id);
CREATE INDEX outbox_waiting ON outbox (receiver, urgency DESC, seq) WHERE state = 'waiting';
CREATE INDEX outbox_order ON outbox (receiver, ordering, seq, urgency) WHERE state = 'waiting';
CREATE INDEX outbox_done ON outbox (state, done_at);
-- How many messages wait and since when, without reading them.
CREATE INDEX outbox_backlog ON outbox (state, receiver, created_at) WHERE state IN ('waiting', 'dead');
-- The last errors of messages that are retried, without reading the messages.
CREATE INDEX outbox_failing ON outbox (receiver, seq) WHERE state = 'waiting' AND last_error <> '';

-- One row: the last seq that was assigned, also if its message was deleted.
CREATE TABLE outbox_head (
    id  INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
);

INSERT INTO outbox_head (id, seq) VALUES (1, 0);

-- Transitions of findings to be sent, in the order of commits: seq is assigned by
-- outbox_head, number is what receivers see. receivers are the names of all for which it was
-- ever pending, one per line, so that it is not sent twice. done_at is when no receiver needed
-- it any more; finding and lock_key are empty from then on.
CREATE TABLE alert_events (
    seq         INTEGER PRIMARY KEY,
    event_id    TEXT NOT NULL,
    number      INTEGER NOT NULL,
    target      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at          INTEGER NOT NULL,
    first_sweep      INTEGER NOT NULL,
    lock_key    BLOB NOT NULL,
    finding     TEXT NOT NULL,
    status      TEXT NOT NULL,
    receivers   TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    done_at       INTEGER NOT NULL
);

CREATE UNIQUE INDEX alert_events_id ON alert_events (event_id);
CREATE INDEX alert_events_fingerprint ON alert_events (fingerprint);
CREATE INDEX alert_events_done ON alert_events (done_at) WHERE done_at > 0;

-- Events that go into the next message of a group, and why they were held back before.
CREATE TABLE alert_pending (
    receiver TEXT NOT NULL,
    group_key      TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    held     TEXT NOT NULL,
    urgency  INTEGER NOT NULL,
    PRIMARY KEY (receiver, group_key, seq)
) WITHOUT ROWID;

CREATE INDEX alert_pending_seq ON alert_pending (seq);
CREATE INDEX alert_pending_held ON alert_pending (receiver, group_key) WHERE held <> '';

-- When a group is due, 0 for not before its next event, and when its last message was
-- written. A group is as urgent as the most urgent of its pending events.
CREATE TABLE alert_groups (
    receiver TEXT NOT NULL,
    group_key      TEXT NOT NULL,
    due_at   INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    urgency  INTEGER NOT NULL,
    PRIMARY KEY (receiver, group_key)
) WITHOUT ROWID;

CREATE INDEX alert_groups_due ON alert_groups (receiver, due_at);
CREATE INDEX alert_groups_urgent ON alert_groups (receiver, urgency, due_at) WHERE due_at > 0;

-- The findings that a receiver knows as firing, and the last event of each that was sent.
CREATE TABLE alert_delivery_state (
    receiver    TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    group_key         TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    first_sweep      INTEGER NOT NULL,
    PRIMARY KEY (receiver, fingerprint)
) WITHOUT ROWID;

CREATE INDEX alert_delivery_state_group ON alert_delivery_state (receiver, group_key);
CREATE INDEX alert_delivery_state_seq ON alert_delivery_state (seq);

-- ended_at is set when a silence was ended early. fingerprint is that of the one finding
-- that was accepted.
CREATE TABLE silences (
    id          TEXT PRIMARY KEY,
    matchers    TEXT NOT NULL,
    reason      TEXT NOT NULL,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    starts_at   INTEGER NOT NULL,
    ends_at     INTEGER NOT NULL,
    ended_by    TEXT NOT NULL,
    ended_at    INTEGER NOT NULL,
    fingerprint TEXT NOT NULL
);

CREATE INDEX silences_ends ON silences (ends_at);

-- Which process works on a target. Rows are never deleted, since fences only grow.
CREATE TABLE leases (
    target     TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    address    TEXT NOT NULL,
    fence      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

-- A renewal must not wait for writers under the lease, a take-over must: an UPDATE of a
-- column of a unique index takes the stronger row lock (PostgreSQL).
CREATE UNIQUE INDEX leases_fence ON leases (target, fence);

-- The agents that share this database. key is the digest of the certificate of one, targets
-- the names in its configuration, unreachable those that it cannot reach, reachable those that it
-- reaches and another one cannot. Times are of the database's clock.
CREATE TABLE replicas (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    address    TEXT NOT NULL,
    key        TEXT NOT NULL,
    version    TEXT NOT NULL,
    targets    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    unreachable TEXT NOT NULL,
    reachable  TEXT NOT NULL
);

-- Sessions of browsers. digest is the SHA-256 of the session's ID, which is stored nowhere.
-- stamp identifies the password or token that it began with; given are the roles and teams
-- of an OIDC provider.
CREATE TABLE sessions (
    digest     TEXT PRIMARY KEY,
    user_name  TEXT NOT NULL,
    source     TEXT NOT NULL,
    stamp      TEXT NOT NULL,
    given      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

CREATE INDEX sessions_expires ON sessions (expires_at);
