package rules

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// TestForeignNumbersAreNoVerdict: metadata can be written by anybody; intervals
// and times that overflow must not make a holder late.
func TestForeignNumbersAreNoVerdict(t *testing.T) {
	t.Parallel()
	far := time.UnixMilli(math.MaxInt64 / 2)
	for name, change := range map[string]func(*locksteward.Lock){
		"interval": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{Acquired: t0, RenewEvery: math.MaxInt64}
		},
		"renewed in the future": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{Acquired: t0, Renewed: far, RenewEvery: time.Second}
		},
		"acquired in the future, held at most for ever": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{Acquired: far, RenewEvery: time.Second, MaxHold: math.MaxInt64}
		},
		"nothing said": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{RenewEvery: time.Second}
		},
		"learned interval": func(l *locksteward.Lock) {
			l.History.Renewals, l.History.LastRenewal, l.History.RenewEvery = 2, t0, math.MaxInt64
		},
		"expiry in the far future": func(l *locksteward.Lock) {
			l.Library, l.ExpireAt = "redisson", math.MaxInt64
			l.History.Renewals, l.History.LastRenewal = 2, t0
		},
		"expiry in the past": func(l *locksteward.Lock) {
			l.Library, l.ExpireAt = "redisson", 1
			l.History.Renewals, l.History.LastRenewal = 2, t0
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lockAt("a", after(time.Second), change)
			if r := judgeRenewal(&l, formats.Facts(l.Library), l.At); r.late() {
				t.Errorf("late by %s", r.overdue)
			}
		})
	}
}

// TestKnownIntervals: what is known of a library counts where it fits what was
// seen, and only there.
func TestKnownIntervals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		library        string
		known, learned time.Duration
		ttl, since     time.Duration // since the last renewal was seen
		late           bool
	}{
		// 30 s, each 10 s: a renewal each third of the lease.
		"redisson fair, in time":       {"redisson-fair", 10 * time.Second, 30 * time.Second, 21 * time.Second, 9 * time.Second, false},
		"redisson fair, late":          {"redisson-fair", 10 * time.Second, 30 * time.Second, 13 * time.Second, 17 * time.Second, true},
		"redisson without a watchdog":  {"redisson-permit-semaphore", 0, 30 * time.Second, 16 * time.Second, 14 * time.Second, false},
		"learned a little less":        {"hangfire", 15 * time.Second, 12 * time.Second, 14 * time.Second, 16 * time.Second, false},
		"learned a little more":        {"hangfire", 15 * time.Second, 18 * time.Second, 10 * time.Second, 20 * time.Second, true},
		"configured shorter":           {"hangfire", 15 * time.Second, 5 * time.Second, 8 * time.Second, 10 * time.Second, true},
		"looks too far apart to learn": {"hangfire", 15 * time.Second, 30 * time.Second, 10 * time.Second, 20 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lockAt("a", t0, func(l *locksteward.Lock) {
				l.Library, l.RenewEvery, l.TTL, l.ExpireAt = tc.library, tc.known, tc.ttl, t0.Add(tc.ttl).UnixMilli()
				l.History.Renewals, l.History.LastRenewal, l.History.RenewEvery = 5, t0.Add(-tc.since), tc.learned
			})
			if r := judgeRenewal(&l, formats.Facts(l.Library), t0); !r.known || r.late() != tc.late {
				t.Errorf("late %v, want %v: %+v", r.late(), tc.late, r)
			}
		})
	}
}

// TestEndlessLease: a key may live for longer than a time.Duration can say; no finding
// prints the largest duration that there is as if it had been measured.
func TestEndlessLease(t *testing.T) {
	t.Parallel()
	l := lockAt("a", t0, func(l *locksteward.Lock) { l.TTL, l.ExpireAt = math.MaxInt64, math.MaxInt64 })
	v := ttlTooLong{}.Evaluate(Input{Now: t0, Lock: &l})
	if v.Finding == nil || !strings.Contains(catalogue.Text("en", v.Finding.Summary), "a TTL of >876000h, above") {
		t.Fatalf("%s: %s", v.Result, v.Reason)
	}
	for _, line := range append(v.Finding.Evidence, v.Finding.CounterEvidence...) {
		if strings.Contains(catalogue.Text("en", line)+catalogue.Text("zh", line), "2562047h") {
			t.Error(line)
		}
	}
}
