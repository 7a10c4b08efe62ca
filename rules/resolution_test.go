package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// A finding that ended says why, in both languages, and not what was wrong.
func TestResolvedSaysWhy(t *testing.T) {
	t.Parallel()
	bare := func(at time.Time) locksteward.Lock {
		return lockAt("a", at, func(l *locksteward.Lock) {
			l.TTL, l.ExpireAt, l.Node, l.History.FirstSeen = locksteward.NoExpiry, locksteward.NoExpireAt, "n1", t0
		})
	}
	end := func(how locksteward.EndedHow, by locksteward.ServerEventKind) func(e *Engine) []locksteward.Transition {
		return func(e *Engine) []locksteward.Transition {
			at := after(5 * time.Second)
			return e.EvaluateDirect(locksteward.Update{Target: "redis", At: at, Endings: []locksteward.Ending{{Lock: bare(after(3 * time.Second)), How: how, At: at, By: by}}})
		}
	}
	for want, over := range map[string]func(e *Engine) []locksteward.Transition{
		"the lock was released":                         end(locksteward.EndedReleased, ""),
		"its lease expired, and nobody had released it": end(locksteward.EndedExpired, ""),
		"it was deleted before its expiry":              end(locksteward.EndedDeleted, ""),
		"another hold has the lock":                     end(locksteward.EndedReplaced, ""),
		"another server process answers":                end(locksteward.EndedDeleted, locksteward.ServerRestarted),
		"the server's data was flushed":                 end(locksteward.EndedDeleted, locksteward.ServerFlushed),
		"the target was removed":                        func(e *Engine) []locksteward.Transition { return e.RemoveTarget("redis", after(5*time.Second)) },
		"no longer so: the last look did not find it": func(e *Engine) []locksteward.Transition {
			return e.Evaluate(sweepAt(after(5*time.Second), lockAt("a", after(5*time.Second))))
		},
		"another server process answers (a restart or a f": func(e *Engine) []locksteward.Transition {
			s := sweepAt(after(5 * time.Second))
			s.Nodes = make([]locksteward.NodeState, 1)
			s.Events = []locksteward.ServerEvent{{Kind: locksteward.ServerRestarted, Node: "n1", After: after(3 * time.Second), At: s.At, Locks: 1}}
			s.Endings = []locksteward.Ending{{Lock: bare(after(3 * time.Second)), How: locksteward.EndedDeleted, At: s.At}}
			return e.Evaluate(s)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, nil, nil)
			e.Evaluate(sweepAt(t0, bare(t0)))
			if reported := evaluateLocks(e, "redis", after(3*time.Second), []locksteward.Lock{bare(after(3 * time.Second))}, nil); len(reported) != 1 {
				t.Fatalf("reported %+v", reported)
			}
			reported := over(e)
			for _, tr := range reported {
				f := tr.Finding
				if f.Rule != TTLNone || f.Status != locksteward.StatusResolved {
					continue
				}
				if !strings.Contains(catalogue.Text("en", f.Resolution), want) || catalogue.Text("zh", f.Resolution) == "" {
					t.Errorf("resolved: %+v", f.Resolution)
				}
				return
			}
			t.Errorf("not resolved: %+v", reported)
		})
	}
}
