package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/locksteward/locksteward/alert"
)

// A message has at most so many lines and bytes, unless one line alone has more.
const (
	hookLines = 100
	hookBytes = 512 << 10
)

// webhookReceiver posts lines in messages of their own: {"version":1,"records":[…]}.
// Who takes one answers with 2xx when it is kept; what was posted is posted again
// until then.
type webhookReceiver struct{ caller *alert.Caller }

func newWebhook(cfg alert.Endpoint) (*webhookReceiver, error) {
	caller, err := alert.NewCaller(cfg)
	if err != nil {
		return nil, fmt.Errorf("webhook.%w", err)
	}
	return &webhookReceiver{caller}, nil
}

// CheckFiles opens the files of webhooks, as [New] does, and reports all problems at
// once, each with its key. What is wrong for another reason is left to [Config.Validate].
func (c Config) CheckFiles() error {
	var errs []error
	for i, s := range c.Sinks {
		if s.Webhook == nil || s.Webhook.Validate() != nil {
			continue
		}
		caller, err := alert.NewCaller(*s.Webhook)
		if err == nil {
			caller.Close()
			continue
		}
		at := fmt.Sprintf("sinks[%d].webhook", i)
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				errs = append(errs, fmt.Errorf("%s.%w", at, e))
			}
		} else {
			errs = append(errs, fmt.Errorf("%s.%w", at, err))
		}
	}
	return errors.Join(errs...)
}

func (r *webhookReceiver) write(ctx context.Context, records []record) error {
	for len(records) > 0 {
		n, size := 0, 0
		for n < len(records) && n < hookLines && (n == 0 || size+len(records[n].line) <= hookBytes) {
			size += len(records[n].line)
			n++
		}
		body := hookBody(records[:n])
		sum := sha256.Sum256(body)
		if err := r.caller.Post(ctx, "audit-"+hex.EncodeToString(sum[:16]), body); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func hookBody(records []record) []byte {
	out := []byte(`{"version":1,"records":[`)
	for i, rec := range records {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, bytes.TrimSuffix(rec.line, []byte("\n"))...)
	}
	return append(out, "]}"...)
}

func (r *webhookReceiver) reopen() {}

func (r *webhookReceiver) close() error {
	r.caller.Close()
	return nil
}
