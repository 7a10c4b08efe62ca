package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// DefaultPagerDutyURL takes events of all services of the region US.
const DefaultPagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// pagerDutyCap is how many findings of an alert are in its details.
const pagerDutyCap = 20

// pagerDutyKind is a service of PagerDuty, through its Events API v2:
// docs/receivers/pagerduty.md.
var pagerDutyKind = kind{
	// A service takes 120 events a minute for each integration key, and a test is two of them.
	traits: traits{cap: pagerDutyCap, people: true, onePerGroup: true, rates: rates{perMinute: 100}},
	fill: func(r *Receiver) {
		if r.URL == "" && r.URLFile == "" {
			r.URL = DefaultPagerDutyURL
		}
	},
	problems: func(r Receiver) []error {
		switch {
		case r.RoutingKeyFile == "" && r.RoutingKey == "":
			return []error{errors.New("routing_key_file: is missing: write the path of a file that holds the integration key of a service (Events API v2), or routing_key")}
		case r.RoutingKey != "":
			if _, err := parseRoutingKey(r.RoutingKey.Reveal()); err != nil {
				return []error{fmt.Errorf("routing_key: got %s, which %w", r.RoutingKey, err)}
			}
		}
		return nil
	},
	open: func(r Receiver, fs *files) (transport, error) {
		key, err := r.routingKey(fs)
		chatReceiver, err := newChatReceiver(r, fs, err)
		if err != nil {
			return nil, err
		}
		return &pagerDuty{chatReceiver, key}, nil
	},
}

var routingKeyPattern = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)

// parseRoutingKey reads an integration key. Its errors do not show it.
func parseRoutingKey(text string) (locksteward.Secret, error) {
	key := strings.TrimSpace(text)
	if !routingKeyPattern.MatchString(key) {
		return "", fmt.Errorf("must hold the 32 letters and digits of an integration key, and has %d characters", len(key))
	}
	return locksteward.Secret(key), nil
}

// routingKey is the integration key; its error begins with the key in the configuration.
func (r Receiver) routingKey(fs *files) (locksteward.Secret, error) {
	if r.RoutingKeyFile == "" {
		key, err := parseRoutingKey(r.RoutingKey.Reveal())
		if err != nil {
			return "", fmt.Errorf("routing_key: %w", err)
		}
		return key, nil
	}
	key, err := valueOf(fs, "routing_key_file", r.RoutingKeyFile, func(text []byte) (locksteward.Secret, error) {
		key, err := parseRoutingKey(string(text))
		if err != nil {
			return "", fmt.Errorf("%q %w", r.RoutingKeyFile, err)
		}
		return key, nil
	})
	if err != nil {
		return "", fmt.Errorf("routing_key_file: %w", err)
	}
	return key, nil
}

// pagerDuty delivers to one service.
type pagerDuty struct {
	*chatReceiver
	key locksteward.Secret
}

// send makes one attempt for each event of the notification: usually there is one. A
// repeated event changes nothing there, since it has the same dedup_key.
func (d *pagerDuty) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return undecodable(d.endpoint, out.err)
	}
	for _, e := range d.events(out.payload) {
		if err := d.enqueue(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (d *pagerDuty) enqueue(ctx context.Context, e pdEvent) error {
	e.RoutingKey = d.key.Reveal()
	body, err := e.encode()
	if err != nil {
		return undecodable(d.endpoint, err)
	}
	a, err := d.post(ctx, body, nil)
	return d.classify(a, err, readPagerDuty, d.key)
}

// readPagerDuty reads an answer of the Events API v2:
// {"status":"success","message":"Event processed","dedup_key":"…"}.
func readPagerDuty(body []byte) (*verdict, bool) {
	var b struct {
		Status  string   `json:"status"`
		Message string   `json:"message"`
		Errors  []string `json:"errors"`
	}
	if json.Unmarshal(body, &b) != nil || b.Status == "" {
		return nil, false
	}
	if b.Status == "success" {
		return nil, true
	}
	v := &verdict{code: b.Status, message: strings.Join(append([]string{b.Message}, b.Errors...), "; "), disposition: unacceptable}
	if slices.ContainsFunc(b.Errors, func(s string) bool { return strings.Contains(s, "routing_key") }) {
		v.disposition = fixable
	}
	return v, true
}
