-- Times are microseconds since 1970 (UTC), 0 for "not yet". Keys of locks are
-- bytes, not text. Tokens of locks are nowhere in here.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE requests (
    id             TEXT PRIMARY KEY,
    state          TEXT NOT NULL,
    target         TEXT NOT NULL,
    db             BIGINT NOT NULL,
    lock_key       BYTEA NOT NULL,
    evidence       TEXT NOT NULL,
    evidence_hash  TEXT NOT NULL,
    requester      TEXT NOT NULL,
    reason         TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    approved_until BIGINT NOT NULL,
    finished_at    BIGINT NOT NULL,
    outcome        TEXT NOT NULL,
    waiters_woken  BIGINT NOT NULL
);

CREATE UNIQUE INDEX requests_open ON requests (target, db, lock_key)
    WHERE state IN ('pending', 'approved', 'executing');
CREATE INDEX requests_key ON requests (target, db, lock_key, created_at);
CREATE INDEX requests_state ON requests (state, created_at);

CREATE TABLE decisions (
    request_id    TEXT NOT NULL REFERENCES requests (id),
    n             BIGINT NOT NULL,
    decided_by    TEXT NOT NULL,
    approve       BIGINT NOT NULL,
    reason        TEXT NOT NULL,
    decided_at    BIGINT NOT NULL,
    evidence_hash TEXT NOT NULL,
    PRIMARY KEY (request_id, n)
);

CREATE TABLE entries (
    seq       BIGINT PRIMARY KEY,
    at        BIGINT NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    target    TEXT NOT NULL,
    lock_key  BYTEA NOT NULL,
    subject   TEXT NOT NULL,
    reason    TEXT NOT NULL,
    outcome   TEXT NOT NULL,
    detail    BYTEA NOT NULL,
    prev_hash TEXT NOT NULL,
    hash      TEXT NOT NULL
);

CREATE INDEX entries_subject ON entries (subject, seq);
CREATE INDEX entries_key ON entries (lock_key, seq);

-- One row: the last entry. It tells a tail that was cut off.
CREATE TABLE entries_head (
    id   BIGINT PRIMARY KEY,
    seq  BIGINT NOT NULL,
    hash TEXT NOT NULL
);

INSERT INTO entries_head (id, seq, hash) VALUES (1, 0, '');

CREATE TABLE history (
    target       TEXT NOT NULL,
    db           BIGINT NOT NULL,
    lock_key     BYTEA NOT NULL,
    token_digest TEXT NOT NULL,
    first_seen   BIGINT NOT NULL,
    last_seen    BIGINT NOT NULL,
    renewals     BIGINT NOT NULL,
    last_renewal BIGINT NOT NULL,
    renew_every  BIGINT NOT NULL, -- nanoseconds
    expire_at    BIGINT NOT NULL, -- as PEXPIRETIME says, milliseconds
    claim_id     TEXT NOT NULL,
    PRIMARY KEY (target, db, lock_key)
);

CREATE INDEX history_last_seen ON history (last_seen);

CREATE TABLE findings (
    target      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    lock_key    BYTEA NOT NULL,
    finding     TEXT NOT NULL,
    PRIMARY KEY (target, fingerprint)
);
