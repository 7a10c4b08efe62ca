-- The agents that share this database. key is the digest of the certificate by
-- which others know one, targets the names that its configuration has. Times are of
-- the database's clock.
CREATE TABLE replicas (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    address    TEXT NOT NULL,
    key        TEXT NOT NULL,
    version    TEXT NOT NULL,
    targets    TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- A renewal must not wait for those who write under the lease, a take-over must: an
-- UPDATE of a column that is in a unique index takes the stronger lock.
CREATE UNIQUE INDEX leases_fence ON leases (target, fence);

ALTER TABLE replicas SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
