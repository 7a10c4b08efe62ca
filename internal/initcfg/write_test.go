package initcfg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/initcfg"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var target = initcfg.Target{Name: "redis", URL: "redis://127.0.0.1:6379/0"}

func all(initcfg.Proposal) bool { return true }

func lockOf(key string, change func(*locksteward.Lock)) locksteward.Lock {
	l := locksteward.Lock{
		Observation: locksteward.Observation{
			Key: key, Class: class.Default, Kind: locksteward.KindLock, Library: "token", At: begin, TTL: 20 * time.Second,
			ExpireAt: begin.Add(20 * time.Second).UnixMilli(), Identity: locksteward.IdentityStrong, Waiters: -1,
			TokenDigest: "hmac-sha256:feed",
		},
		History: locksteward.History{FirstSeen: begin.Add(-2 * time.Second)},
	}
	if change != nil {
		change(&l)
	}
	return l
}

// look is what one complete sweep at a second saw.
func look(second int, locks []locksteward.Lock, ended ...locksteward.Lock) locksteward.Sweep {
	at := begin.Add(time.Duration(second) * time.Second)
	s := locksteward.Sweep{Target: "redis", Started: at, At: at, Masters: []locksteward.MasterPass{{Complete: true, Keys: 5000}}, Locks: locks, Candidates: 12}
	for _, l := range ended {
		s.Endings = append(s.Endings, locksteward.Ending{Lock: l, How: locksteward.EndedReleased, At: at})
	}
	return s
}

func TestProposeAndWrite(t *testing.T) {
	t.Parallel()
	c := initcfg.NewCollector("redis")
	var ended []locksteward.Lock
	for i := range 40 {
		ended = append(ended, lockOf(fmt.Sprintf("lock:order:%d", i), nil))
	}
	stuck := lockOf("lock:invoice:7", func(l *locksteward.Lock) {
		l.TTL, l.ExpireAt, l.Identity, l.Library = locksteward.NoExpiry, locksteward.NoExpireAt, locksteward.IdentityNone, "setnx"
		l.History.FirstSeen = begin.Add(-time.Hour)
	})
	long := lockOf("batch:lock:nightly", func(l *locksteward.Lock) { l.TTL, l.ExpireAt = 20*time.Hour, begin.Add(20*time.Hour).UnixMilli() })
	held := lockOf("lock:order:77", nil)
	c.AddSweep(look(-10, nil))
	c.AddSweep(look(0, append([]locksteward.Lock{stuck, long, held, lockOf("42", nil)}, ended...)))
	c.AddSweep(look(1, []locksteward.Lock{stuck, long, held, lockOf("42", nil)}, ended...))
	plan := initcfg.Propose(c.Seen(), 1)

	byName := map[string]initcfg.Proposal{}
	for _, p := range plan.Proposals {
		byName[p.Name] = p
	}
	order := byName["order"]
	if len(order.Keys) != 41 || order.Open != 1 || order.Row.Holds() != 40 || order.Class.TTL != class.TTLRequired || order.Class.Expect != 30*time.Second ||
		order.Class.MaxTTL != time.Minute || order.Examples(plan.Seen)[0] != "lock:order:77" {
		t.Errorf("order: %+v", order.Class)
	}
	invoice := byName["invoice"]
	if invoice.Class.TTL != class.TTLUnset || invoice.Class.Expect != 0 || invoice.WithoutTTL != 1 || invoice.AgeMax != time.Hour || !invoice.AgeMinimum || invoice.Class.MaxTTL != 0 {
		t.Errorf("invoice: %+v", invoice)
	}
	// A TTL near the default limit is not reported just because nobody wrote a limit.
	if nightly := byName["batch-nightly"]; nightly.Class.MaxTTL != 48*time.Hour {
		t.Errorf("nightly: %+v", nightly.Class)
	}
	if len(plan.Rest) != 1 || plan.Rest[0] != "42" {
		t.Errorf("rest %q", plan.Rest)
	}
	if few := initcfg.Propose(c.Seen(), 2); len(few.Proposals) != 1 || len(few.Rest) != 3 {
		t.Errorf("at least two keys: %d classes, rest %q", len(few.Proposals), few.Rest)
	}

	text := initcfg.Write(plan, target, begin, all)
	for _, want := range []string{
		"expect: 30s", "the 99th percentile of 40 holds", "No expect: no hold ended", "1 without TTL", "held for at least 1h", "max_ttl: 48h",
		"Locks of no class that could be proposed: 1.", "#   42", "not judged: 12", "such as lock:order:77", "token",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, forbidden := range []string{"hmac-sha256", "feed"} {
		if strings.Contains(text, forbidden) {
			t.Errorf("%q is in the file", forbidden)
		}
	}
	parsed(t, text, plan, all)

	// What a person did not take is not there.
	text = initcfg.Write(plan, target, begin, func(p initcfg.Proposal) bool { return p.Name == "invoice" })
	cfg := parsed(t, text, plan, func(p initcfg.Proposal) bool { return p.Name == "invoice" })
	if len(cfg.Classes) != 1 || strings.Contains(text, "lock:order") {
		t.Errorf("more than was taken:\n%s", text)
	}
	cfg = parsed(t, initcfg.Write(plan, target, begin, func(initcfg.Proposal) bool { return false }), plan, func(initcfg.Proposal) bool { return false })
	if len(cfg.Classes) != 0 {
		t.Errorf("nothing was taken, got %d classes", len(cfg.Classes))
	}
}

// parsed reads the text as `config check` does and compares its classes with what
// was proposed.
func parsed(t testing.TB, text string, plan initcfg.Plan, accept func(initcfg.Proposal) bool) config.Config {
	t.Helper()
	cfg, err := config.Parse("locksteward.yaml", []byte(text))
	if err != nil {
		t.Fatalf("not valid: %v\n%s", err, text)
	}
	i := 0
	for _, p := range plan.Proposals {
		if !accept(p) {
			continue
		}
		got := cfg.Classes[i]
		if got.Name != p.Name || got.Match[0] != p.Match || got.Expect != p.Class.Expect || got.TTL != p.Class.TTL || got.MaxTTL != p.Class.MaxTTL || got.Releasable() {
			t.Fatalf("class %d is %+v, want %+v\n%s", i, got, p.Class, text)
		}
		i++
	}
	return cfg
}

func TestWriteTheLogin(t *testing.T) {
	t.Parallel()
	text := initcfg.Write(initcfg.Plan{}, initcfg.Target{
		Name: "true", URL: "redis+cluster://a:1,b:2", Username: `who "ever"`, PasswordLeftOut: true, AddrMap: map[string]string{"10.0.0.1:6379": "127.0.0.1:7000"},
	}, begin, all)
	cfg, err := config.Parse("x", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got := cfg.Targets[0]
	if got.Name != "true" || got.URL != "redis+cluster://a:1,b:2" || got.Username != `who "ever"` || got.AddrMap["10.0.0.1:6379"] != "127.0.0.1:7000" || got.PasswordFile != "" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(text, "# password_file:") {
		t.Errorf("nothing says where the password goes:\n%s", text)
	}
}

// Keys of any bytes give a file that reads back as it was meant, whatever stands
// in their names: no comment ends early, no quote, no variable.
func TestAnyKeyMakesAValidFile(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(
		rapid.SampledFrom([]string{"lock", "${HOME}", "\n  - evil: 1", "\"", "'", "#", ": ", "\u2028", "\x00", "\ufeff", "true", "[", "锁", "\\"}),
		rapid.StringMatching(`[a-z0-9]{1,9}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) }),
		rapid.StringN(0, 300, 900),
	)
	rapid.Check(t, func(t *rapid.T) {
		c := initcfg.NewCollector("redis")
		var locks []locksteward.Lock
		for range rapid.IntRange(0, 15).Draw(t, "keys") {
			key := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "key"), ":")
			locks = append(locks, lockOf(key, func(l *locksteward.Lock) {
				if rapid.Bool().Draw(t, "ttl") {
					l.TTL, l.ExpireAt = locksteward.NoExpiry, locksteward.NoExpireAt
				}
			}))
		}
		c.AddSweep(look(0, locks))
		plan := initcfg.Propose(c.Seen(), 1)
		text := initcfg.Write(plan, target, begin, all)
		cfg, err := config.Parse("locksteward.yaml", []byte(text))
		if err != nil {
			t.Fatalf("not valid: %v\n%s", err, text)
		}
		set, err := class.NewSet(cfg.Classes)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plan.Proposals {
			for _, key := range p.Keys {
				if m := set.Classify(key); m.Class != p.Name {
					t.Fatalf("%q is of class %q as written, want %q\n%s", key, m.Class, p.Name, text)
				}
			}
		}
	})
}
