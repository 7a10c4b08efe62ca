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

-- One row: the last entry. It tells a tail that was cut off.
CREATE TABLE entries_head (
    id   INTEGER PRIMARY KEY,
    seq  INTEGER NOT NULL,
    hash TEXT NOT NULL
);

INSERT INTO entries_head (id, seq, hash) VALUES (1, 0, '');

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
    expire_at    INTEGER NOT NULL, -- as PEXPIRETIME says, milliseconds
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
