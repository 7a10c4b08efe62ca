package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

func redlockOfThree() []Redlock {
	return []Redlock{{Name: "payments", Targets: []string{"a", "b", "c"}}}
}

// masterSweep is a complete sweep of one master between two moments of the
// agent's clock.
func masterSweep(target string, from, to int, keys ...string) locksteward.Sweep {
	s := locksteward.Sweep{
		Target: target, Started: after(time.Duration(from) * time.Second), Duration: time.Duration(to-from) * time.Second,
		At: after(time.Duration(to) * time.Second), Masters: []locksteward.MasterPass{{Complete: true}},
	}
	for _, k := range keys {
		key, digest, _ := strings.Cut(k, "=")
		s.Locks = append(s.Locks, lockAt(key, s.At, func(l *locksteward.Lock) { l.Target, l.TokenDigest = target, digest }))
	}
	return s
}

func minorities(e *Engine) string {
	var out []string
	for _, f := range e.Findings() {
		if f.Rule == "redlock/minority" {
			out = append(out, fmt.Sprintf("%s on %s: %s", f.Key, f.Target, catalogue.Text("en", f.Summary)[strings.Index(catalogue.Text("en", f.Summary), "lives"):]))
		}
	}
	return strings.Join(out, "; ")
}

// A lock is in the minority when the other masters certainly do not have it:
// never while sweeps may just have missed its votes.
func TestRedlockMinority(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.SetRedlocks(redlockOfThree())
	const minority = "lock:x on a: lives on 1 of 3 masters; a holder needs 2"
	for i, step := range []struct {
		sweep locksteward.Sweep
		want  string
	}{
		{masterSweep("b", 0, 1), ""},                     // before the lock was taken
		{masterSweep("c", 0, 1), ""},                     //
		{masterSweep("a", 2, 3, "lock:x=1"), ""},         // first seen
		{masterSweep("a", 4, 5, "lock:x=1"), ""},         // the others were not read since
		{masterSweep("b", 6, 7), ""},                     // it may be gone everywhere
		{masterSweep("c", 6, 7), ""},                     //
		{masterSweep("a", 8, 9, "lock:x=1"), minority},   // it was there all the time
		{masterSweep("b", 10, 11, "lock:x=1"), minority}, // a vote after all: judged with a's next sweep
		{masterSweep("a", 12, 13, "lock:x=1"), ""},
		{masterSweep("b", 14, 15, "lock:x=2"), ""}, // replaced there by another hold
		{masterSweep("a", 16, 17, "lock:x=1"), minority},
		{cut(masterSweep("c", 18, 19)), minority}, // c can no longer be read in full
		{masterSweep("a", 20, 21, "lock:x=1"), ""},
	} {
		e.Evaluate(step.sweep)
		if got := minorities(e); got != step.want {
			t.Errorf("step %d, %s: %q, want %q", i, step.sweep.Target, got, step.want)
		}
	}
}

// What is no Redlock's is not judged: other targets, other classes, candidates,
// tokens that everybody has.
func TestRedlockCovers(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	list := redlockOfThree()
	list[0].Classes = []string{"default"}
	e.SetRedlocks(list)
	rounds := func(change func(*locksteward.Lock)) string {
		for n := range 3 {
			s := masterSweep("a", 10*n, 10*n+1, "lock:x=1")
			change(&s.Locks[0])
			e.Evaluate(s)
			for _, other := range []string{"b", "c"} {
				e.Evaluate(masterSweep(other, 10*n+2, 10*n+3))
			}
		}
		defer func() {
			for _, t := range []string{"a", "b", "c"} {
				e.RemoveTarget(t, after(time.Hour))
			}
		}()
		return minorities(e)
	}
	if got := rounds(func(*locksteward.Lock) {}); got == "" {
		t.Error("the lock itself is not judged")
	}
	for name, change := range map[string]func(*locksteward.Lock){
		"class":     func(l *locksteward.Lock) { l.Class = "other" },
		"candidate": func(l *locksteward.Lock) { l.Kind = locksteward.KindCandidate },
		"shared":    func(l *locksteward.Lock) { l.SharedToken = true },
		"too large": func(l *locksteward.Lock) { l.TokenDigest = "" },
	} {
		if got := rounds(change); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	e.SetRedlocks(nil)
	if got := rounds(func(*locksteward.Lock) {}); got != "" {
		t.Errorf("without configuration: %s", got)
	}
}

// Against a model that knows the truth: what is called a minority is one, however
// sweeps fall between acquires, lost votes and releases, and a minority that
// stands is found.
func TestMinoritiesAgainstTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e"}[:rapid.SampledFrom([]int{3, 4, 5}).Draw(t, "masters")]
		e, err := New(nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		e.SetRedlocks([]Redlock{{Name: "r", Targets: names}})
		votes := map[string]bool{} // of the hold that stands
		hold, clock := 0, 0
		firing := func() bool { return minorities(e) != "" }
		sweep := func(n string, complete bool) {
			clock += 2
			s := masterSweep(n, clock, clock+1)
			if votes[n] && (complete || rapid.Bool().Draw(t, "met")) {
				s = masterSweep(n, clock, clock+1, fmt.Sprintf("lock:x=%d", hold))
			}
			if !complete {
				s = cut(s)
			}
			for _, tr := range e.Evaluate(s) {
				f := tr.Finding
				if f.Rule == "redlock/minority" && f.Status == locksteward.StatusFiring && len(votes) >= majority(len(names)) {
					t.Fatalf("%d of %d masters have it, and it is reported: %s; %q", len(votes), len(names), catalogue.Text("en", f.Summary), rendered("en", f.Evidence))
				}
			}
		}
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			n := rapid.SampledFrom(names).Draw(t, "master")
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0: // acquired, on some of them
				if len(votes) == 0 {
					hold++
					for _, n := range names {
						if rapid.IntRange(0, 3).Draw(t, "votes") > 0 {
							votes[n] = true
						}
					}
				}
			case 1:
				delete(votes, n) // lost there
			case 2:
				clear(votes) // released
			case 3:
				sweep(n, false)
			default:
				sweep(n, true)
			}
		}
		for range 3 {
			for _, n := range names {
				sweep(n, true)
			}
		}
		if minority := len(votes) > 0 && len(votes) < majority(len(names)); firing() != minority {
			t.Fatalf("%d of %d masters have it: firing %v", len(votes), len(names), firing())
		}
	})
}

func TestValidateRedlocks(t *testing.T) {
	t.Parallel()
	targets, classes := []string{"a", "b", "c", "d"}, []string{"default", "orders"}
	if errs := ValidateRedlocks([]Redlock{{Name: "r", Targets: []string{"a", "b", "c"}, Classes: []string{"orders"}}}, targets, classes); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	bad := []Redlock{
		{Targets: []string{"a", "a", "x"}},
		{Name: "r", Targets: []string{"b", "c"}, Classes: []string{"nope"}},
		{Name: "r", Targets: []string{"b", "c", "d"}},
	}
	var got []string
	for _, err := range ValidateRedlocks(bad, targets, classes) {
		got = append(got, err.Error())
	}
	want := []string{
		"redlock[0].name: missing",
		`redlock[0].targets[1]: got "a" twice`,
		`redlock[0].targets[2]: got "x", which is no target; write one of a, b, c, d`,
		"redlock[1].targets: got 2, write the names of at least 3 targets",
		`redlock[1].classes[0]: got "nope", which is no class; write one of default, orders`,
		`redlock[2].name: got "r", which redlock[1] has already`,
		`redlock[2].targets[0]: got "b", which is a master of redlock[1] already`,
		`redlock[2].targets[1]: got "c", which is a master of redlock[1] already`,
	}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}
