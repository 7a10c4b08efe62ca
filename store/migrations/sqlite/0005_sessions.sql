-- Browsers that are signed in. The id is nowhere in here, only its SHA-256; stamp
-- recognises the password or token that it began with, given are the roles and
-- teams of an OIDC provider.
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
