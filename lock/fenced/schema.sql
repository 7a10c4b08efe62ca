-- The greatest fence that each guarded resource has seen.
CREATE TABLE IF NOT EXISTS fences (
    resource text   PRIMARY KEY,
    fence    bigint NOT NULL CHECK (fence > 0)
)
