-- What waits for receivers and since when, without a look at the messages.
CREATE INDEX outbox_backlog ON outbox (state, receiver, created_at) WHERE state IN ('waiting', 'dead');
