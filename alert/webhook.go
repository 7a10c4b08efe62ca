package alert

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/locksteward/locksteward"
)

// Webhook is an HTTP endpoint that takes the payload of docs/webhook.md.
type Webhook struct {
	Endpoint `yaml:",inline"`
	// SecretFiles hold one signing secret each (whsec_ and base64); several sign
	// with each, for rotation. None: notifications are not signed.
	SecretFiles []string `yaml:"secret_files"`
	// Secrets are in place of secret_files the secrets themselves, from the environment.
	Secrets []locksteward.Secret `yaml:"secrets" from:"env"`
}

func (w Webhook) filled() kind {
	w.Endpoint = w.Endpoint.withDefaults()
	return w
}

func (w Webhook) problems() []error {
	errs := w.Endpoint.problems()
	for i, f := range w.SecretFiles {
		if f == "" {
			errs = append(errs, fmt.Errorf("secret_files[%d]: must be the path of a file, got %q", i, f))
		}
	}
	if len(w.Secrets) > 0 && len(w.SecretFiles) > 0 {
		errs = append(errs, fmt.Errorf("secret_files: %q are given beside secrets (%d of %s): write one of them", w.SecretFiles, len(w.Secrets), locksteward.SecretMask))
	}
	for i, s := range w.Secrets {
		if _, err := parseSecret(s.Reveal()); err != nil {
			errs = append(errs, fmt.Errorf("secrets[%d]: got %s, which %w", i, locksteward.SecretMask, err))
		}
	}
	return errs
}

func (w Webhook) open(_ Receiver, fs *files) (transport, error) {
	hook, err := newWebhook(w, fs)
	if err != nil {
		return nil, err
	}
	return hook, nil
}

func (w Webhook) traits() traits { return traits{Patience: w.Patience, cap: 100} }

// webhook delivers to one endpoint.
type webhook struct {
	*poster
	secrets [][]byte
}

// newWebhook takes what the files that the configuration names hold, and reports all
// problems at once, each with its path below the webhook.
func newWebhook(cfg Webhook, fs *files) (*webhook, error) {
	var errs []error
	u, err := cfg.read(fs)
	if err != nil {
		errs = append(errs, err)
	}
	var secrets [][]byte
	for i, s := range cfg.Secrets {
		key, err := parseSecret(s.Reveal())
		if secrets = append(secrets, key); err != nil {
			errs = append(errs, fmt.Errorf("secrets[%d]: %w", i, err))
		}
	}
	for i, f := range cfg.SecretFiles {
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
	if u == nil {
		_, err := cfg.tls(fs)
		return nil, errors.Join(append(errs, err)...)
	}
	p, err := newPoster(u, cfg.Network, cfg.Timeout, fs)
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return nil, errors.Join(errs...)
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
