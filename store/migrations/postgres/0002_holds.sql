-- How the locks of a class were held in one hour: counts and the few longest
-- holds, as package internal/report encodes them.
CREATE TABLE holds (
    target TEXT NOT NULL,
    class  TEXT NOT NULL,
    slot   BIGINT NOT NULL,
    stats  TEXT NOT NULL,
    PRIMARY KEY (target, class, slot)
);

CREATE INDEX holds_slot ON holds (slot);
