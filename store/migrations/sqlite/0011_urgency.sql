-- How urgent messages and groups are: higher is sent first. A message is at least as
-- urgent as those that wait behind it, a group as the most urgent of what waits in it.
ALTER TABLE outbox ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alert_pending ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alert_groups ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;

DROP INDEX outbox_waiting;
CREATE INDEX outbox_waiting ON outbox (receiver, urgency DESC, seq) WHERE state = 'waiting';
DROP INDEX outbox_order;
CREATE INDEX outbox_order ON outbox (receiver, ordering, seq, urgency) WHERE state = 'waiting';
CREATE INDEX alert_groups_urgent ON alert_groups (receiver, urgency, due_at) WHERE due_at > 0;

-- What a receiver said to the messages that wait for another attempt, without a look at the messages.
CREATE INDEX outbox_failing ON outbox (receiver, seq) WHERE state = 'waiting' AND last_error <> '';
