package alert

import (
	"context"
	"errors"

	"github.com/locksteward/locksteward/internal/credfile"
)

// Caller posts bodies of another package to a webhook: signed, guarded and bounded
// as notifications are, and without an outbox. It is safe for concurrent use.
type Caller struct{ out *reloadingTransport }

// Validate reports what is wrong with e as a webhook, each problem with its key. It reads no
// file.
func (e Endpoint) Validate() error { return errors.Join(e.withDefaults().webhookProblems()...) }

// NewCaller reads the files that the configuration names. They are read again when
// they change.
func NewCaller(cfg Endpoint) (*Caller, error) {
	out, err := openReloading(func(fs *files) (transport, error) { return openWebhook(cfg.withDefaults(), fs) })
	if err != nil {
		return nil, err
	}
	return &Caller{out}, nil
}

// Files reads the files and returns their states, each under its key below the webhook.
// renewed reports, once, that a new version is in use: what failed is worth a retry.
func (c *Caller) Files() (list []credfile.File, renewed bool) {
	list = c.out.states(true)
	return list, c.out.renewed(list)
}

// Post makes one attempt; id is the webhook-id. The error is a *DeliveryError and
// shows nothing of the URL but its host.
func (c *Caller) Post(ctx context.Context, id string, body []byte) error {
	return c.out.send(ctx, newOutgoing(id, body))
}

// Close closes idle connections.
func (c *Caller) Close() { c.out.close() }
