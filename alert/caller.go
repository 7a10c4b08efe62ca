package alert

import (
	"context"
	"errors"
)

// Caller posts bodies of another package to a webhook: signed, guarded and bounded
// as messages to receivers are, and with nothing kept. It is safe for concurrent use.
type Caller struct{ hook *webhook }

// Validate reports what is wrong with w, each problem with its key. It reads no file.
func (w Webhook) Validate() error { return errors.Join(w.withDefaults().problems()...) }

func (w Webhook) withDefaults() Webhook {
	c := Config{Receivers: []Receiver{{Webhook: &w}}}.withDefaults()
	return *c.Receivers[0].Webhook
}

// NewCaller reads the files that the configuration names.
func NewCaller(cfg Webhook) (*Caller, error) {
	hook, err := newWebhook(cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Caller{hook}, nil
}

// Post makes one attempt; id is the webhook-id. The error is a *DeliveryError and
// shows nothing of the URL but its host.
func (c *Caller) Post(ctx context.Context, id string, body []byte) error {
	return c.hook.send(ctx, id, body)
}

// Close ends the connections that nobody uses.
func (c *Caller) Close() { c.hook.close() }
