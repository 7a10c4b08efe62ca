package alert

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/locksteward/locksteward"
)

// webhookKind is an HTTP endpoint that takes the payload of docs/webhook.md.
var webhookKind = kind{
	traits:   traits{cap: 100},
	problems: func(r Receiver) []error { return r.signingProblems() },
	open:     func(r Receiver, fs *files) (transport, error) { return openWebhook(r.Endpoint, fs) },
}

// webhookProblems reports all that is wrong with a webhook that has its defaults, each problem
// with its key.
func (e Endpoint) webhookProblems() []error {
	return slices.Concat(e.urlProblems(), e.limitProblems(), e.secretProblems(), e.signingProblems())
}

// signingProblems reports secrets that cannot sign a webhook.
func (e Endpoint) signingProblems() []error {
	var errs []error
	for i, s := range e.Secrets {
		if _, err := parseSecret(s.Reveal()); err != nil {
			errs = append(errs, fmt.Errorf("secrets[%d]: got %s, which %w", i, locksteward.SecretMask, err))
		}
	}
	return errs
}

// webhook delivers to one endpoint.
type webhook struct {
	*poster
	secrets [][]byte
}

// openWebhook takes what the files that the configuration names hold, and reports all
// problems at once, each with its key.
func openWebhook(e Endpoint, fs *files) (transport, error) {
	p, errs := openPoster(e, fs)
	var secrets [][]byte
	for i, s := range e.Secrets {
		key, err := parseSecret(s.Reveal())
		if secrets = append(secrets, key); err != nil {
			errs = append(errs, fmt.Errorf("secrets[%d]: %w", i, err))
		}
	}
	for i, f := range e.SecretFiles {
		at := fmt.Sprintf("secret_files[%d]", i)
		key, err := valueOf(fs, at, f, func(text []byte) ([]byte, error) {
			key, err := parseSecret(string(text))
			if err != nil {
				return nil, fmt.Errorf("%q: %w", f, err)
			}
			return key, nil
		})
		if secrets = append(secrets, key); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &webhook{poster: p, secrets: secrets}, nil
}

// send makes one attempt. The error is a *DeliveryError.
func (w *webhook) send(ctx context.Context, out outgoing) error {
	now := time.Now()
	header := http.Header{}
	header.Set(HeaderID, out.id)
	header.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	if len(w.secrets) > 0 {
		header.Set(HeaderSignature, signature(w.secrets, out.id, now, out.body))
	}
	_, err := w.post(ctx, out.body, header)
	return err
}
