package alert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
)

// transition makes the n-th transition of the finding on key.
func transition(key string, n uint64, status locksteward.Status) locksteward.Transition {
	return locksteward.Transition{
		EventID: fmt.Sprintf("%s/%d", key, n), Seq: n, At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Finding: locksteward.Finding{
			Rule: "ttl/none", Severity: locksteward.SeverityCritical, Risk: locksteward.RiskDeadlock, Status: status,
			Target: "redis", Class: "orders", Key: key, Library: "token",
			Summary: locksteward.Literal("never expires", "永不过期"), Evidence: []locksteward.Message{locksteward.Literal("PTTL is -1", "PTTL 为 -1")},
			Cause: locksteward.Literal("a crash between SETNX and EXPIRE"), Remedy: locksteward.Literal("release it"),
		},
	}
}

func fire(key string, n uint64) locksteward.Transition {
	return transition(key, n, locksteward.StatusFiring)
}

func resolve(key string, n uint64) locksteward.Transition {
	t := transition(key, n, locksteward.StatusResolved)
	t.Finding.Resolution = locksteward.Literal("the hold ended: the lock was released or deleted", "持有已结束：锁已释放或被删除")
	return t
}

// counts gathers what the hook was sent.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) hooks() Hooks {
	c.n = map[string]int{}
	return Hooks{Delivered: func(receiver, outcome, reason string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[receiver+" "+outcome+" "+reason]++
	}}
}

func (c *counts) get(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}

func (c *counts) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	maps.Copy(out, c.n)
	return out
}

// attempt is one call of a fake transport.
type attempt struct {
	at   time.Time
	id   string
	body string
	p    Payload
}

// fake answers attempts by a function of their number, from 1.
type fake struct {
	answer func(n int, p Payload) error

	mu       sync.Mutex
	attempts []attempt
}

func (f *fake) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return out.err
	}
	p := out.payload
	f.mu.Lock()
	f.attempts = append(f.attempts, attempt{at: time.Now(), id: out.id, body: string(out.body), p: p})
	n := len(f.attempts)
	f.mu.Unlock()
	if f.answer == nil {
		return nil
	}
	return f.answer(n, p)
}

func (f *fake) close() {}

func (f *fake) seen() []attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.attempts)
}

// events are the attempted events as "key status", in order.
func (f *fake) events() []string {
	var out []string
	for _, a := range f.seen() {
		for _, e := range a.p.Findings {
			out = append(out, e.Key.Key+" "+e.Status)
		}
	}
	return out
}

func failing(reason Reason) error {
	return &DeliveryError{Reason: reason, Retryable: true, Endpoint: "https://h", Err: context.DeadlineExceeded}
}

func refusing(reason Reason) error {
	return &DeliveryError{Reason: reason, Endpoint: "https://h", Err: context.DeadlineExceeded}
}

// postOf builds a sender over fake transports, receivers named a, b, ...
func postOf(t *testing.T, hooks Hooks, outs ...transport) *post {
	t.Helper()
	return postWith(t, Endpoint{}, hooks, outs...)
}

// postWith is postOf with the limits of an endpoint.
func postWith(t *testing.T, limits Endpoint, hooks Hooks, outs ...transport) *post {
	t.Helper()
	p := &post{t: t, box: &box{}}
	p.Sender = newSender(zaptest.NewLogger(t), p.box, hooks)
	p.turn(limits, outs...)
	return p
}

// turn has the receivers a, b, ... lead to other places, as a reload does.
func (p *post) turn(limits Endpoint, outs ...transport) {
	// Each finding is sent by itself and at once: how they are grouped is another test.
	cfg := Config{Grouping: Grouping{By: []string{"fingerprint"}, Repeat: 24 * time.Hour * 30}, FirstSweep: FirstSweepFire}
	var to []writer
	var all []*destination
	for i, out := range outs {
		a := newWriter(cfg, Receiver{Name: string(rune('a' + i)), MaxFindings: 1, Endpoint: limits}.withDefaults(), webhookKind.traits, p.hooks)
		to = append(to, a)
		all = append(all, newDestination(out, a))
	}
	p.apply(DefaultDrainTimeout, writers{to, cfg.FirstSweep}, all)
}

// run starts Run and returns a function that ends it and waits.
func (p *post) run() (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Error(err)
		}
	}
}

// writerOf writes for a webhook of the defaults.
func writerOf(name string) writer {
	return newWriter(Config{Grouping: DefaultGrouping()}, Receiver{Name: name}.withDefaults(), webhookKind.traits, Hooks{})
}

// signedBy is an endpoint with files of signing secrets.
func signedBy(e Endpoint, files ...string) Endpoint {
	e.SecretFiles = files
	return e
}

// openAs opens a receiver as one of a kind.
func openAs(t *testing.T, kind string, r Receiver) transport {
	t.Helper()
	r.Name, r.Kind = kind, kind
	r = r.withDefaults()
	if err := (Config{Receivers: []Receiver{r}}).Validate(); err != nil {
		t.Fatal(err)
	}
	out, err := kinds[kind].open(r, &files{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.close)
	return out
}

// eventOfTransition is a transition as it waits in the outbox.
func eventOfTransition(t locksteward.Transition) locksteward.FindingEvent {
	return locksteward.FindingEvent{ID: eventID(t), Number: t.Seq, At: t.At, Finding: t.Finding}
}

// newsOf makes one message of transitions.
func (a writer) newsOf(transitions ...locksteward.Transition) (locksteward.Notification, error) {
	var changes []locksteward.FindingEvent
	for _, t := range transitions {
		changes = append(changes, eventOfTransition(t))
	}
	c := composer{writer: a}
	group := &Group{Key: a.grouping.key(changes[0].Finding), Labels: a.grouping.labels(changes[0].Finding), Firing: len(changes)}
	if made := c.message(ReasonNews, group, "", changes); len(made) == 1 {
		return made[0], nil
	}
	return locksteward.Notification{}, c.err
}

// alone are the messages of transitions of which each is sent by itself to a.
func (p *post) alone(transitions ...locksteward.Transition) []locksteward.Notification {
	p.t.Helper()
	var out []locksteward.Notification
	for _, t := range transitions {
		a := p.workers()[0].dest.Load().writer
		m, err := a.single(eventOfTransition(t), a.grouping.key(t.Finding))
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// events are transitions as the agent hands them to the store.
func (p *post) events(transitions ...locksteward.Transition) []locksteward.FindingEvent {
	return p.Events(transitions, nil, nil)
}
