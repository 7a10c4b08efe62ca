-- The urgency of notifications and groups: higher is sent first. A notification is at
-- least as urgent as those behind it, a group as the most urgent event in it.
ALTER TABLE outbox ADD COLUMN urgency BIGINT NOT NULL DEFAULT 0;
ALTER TABLE alert_pending ADD COLUMN urgency BIGINT NOT NULL DEFAULT 0;
ALTER TABLE alert_groups ADD COLUMN urgency BIGINT NOT NULL DEFAULT 0;

DROP INDEX outbox_waiting;
CREATE INDEX outbox_waiting ON outbox (receiver, urgency DESC, seq) WHERE state = 'waiting';
DROP INDEX outbox_order;
CREATE INDEX outbox_order ON outbox (receiver, ordering, seq, urgency) WHERE state = 'waiting';
CREATE INDEX alert_groups_urgent ON alert_groups (receiver, urgency, due_at) WHERE due_at > 0;

-- Notifications that wait for another attempt, for their last error.
CREATE INDEX outbox_failing ON outbox (receiver, seq) WHERE state = 'waiting' AND last_error <> '';
