package report_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/report"
)

// begin is the time at which histories start.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// truth is one hold as it really was.
type truth struct {
	key        string
	token      string
	from, to   time.Time
	claimed    bool
	seen, over bool
}

// model is a server with one lock per key and anyone who looks at it.
type model struct {
	t        *rapid.T
	holds    []*truth
	table    map[string]*seen
	recorder *report.Recorder
	got      map[string]report.Hold
}

type seen struct {
	hold *truth
	lock locksteward.Lock
}

func (m *model) at(key string, at time.Time) *truth {
	for _, h := range m.holds {
		if h.key == key && !at.Before(h.from) && at.Before(h.to) {
			return h
		}
	}
	return nil
}

// look reads one key, as the scanner does, and adds what it saw to the sweep.
func (m *model) look(key string, at time.Time, s *locksteward.Sweep) {
	now, known := m.at(key, at), m.table[key]
	if known != nil && known.hold != now {
		how := locksteward.EndedReleased
		if now != nil {
			how = locksteward.EndedReplaced
		}
		s.Endings = append(s.Endings, locksteward.Ending{Lock: known.lock, How: how, At: at})
		known.hold.over = true
		delete(m.table, key)
	}
	if now == nil {
		return
	}
	known = m.table[key]
	if known == nil {
		known = &seen{hold: now}
		known.lock.History.FirstSeen = at
		m.table[key] = known
	}
	now.seen = true
	known.lock.Observation = locksteward.Observation{
		Key: key, Class: "orders", Kind: locksteward.KindLock, At: at, TTL: time.Hour, Identity: locksteward.IdentityStrong,
		TokenDigest: now.token, Waiters: -1,
	}
	if now.claimed {
		known.lock.Claim = &locksteward.Claim{ID: now.token, Acquired: now.from}
	}
	s.Locks = append(s.Locks, known.lock)
}

// Whatever was held when, and whenever anybody looked: a hold that was seen to end
// lasted at least Low and at most High, and the quantiles of those that were seen
// lie within their bounds.
func TestBoundsHoldTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, table: map[string]*seen{}, got: map[string]report.Hold{}}
		m.recorder = report.NewRecorder("a", func(h report.Hold) {
			m.got[fmt.Sprint(h.Key, h.EndedAt.UnixNano())] = h
		})
		keys := []string{"k1", "k2", "k3"}
		ms := func(label string, low, high int) time.Duration {
			return time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Millisecond
		}
		for _, key := range keys {
			at := begin.Add(-ms("before", 0, 5000))
			for i := range rapid.IntRange(0, 12).Draw(t, "holds") {
				from := at.Add(ms("idle", 0, 3000))
				at = from.Add(ms("held", 1, 6000))
				m.holds = append(m.holds, &truth{key: key, token: fmt.Sprint(key, i), from: from, to: at, claimed: rapid.Bool().Draw(t, "claimed")})
			}
		}
		ended := map[*truth]report.Hold{}
		at := begin
		for range rapid.IntRange(1, 25).Draw(t, "looks") {
			at = at.Add(ms("pause", 1, 3000))
			took := ms("took", 0, 500)
			s := locksteward.Sweep{Target: "a", At: at.Add(took), Started: at, Duration: took}
			whole := rapid.IntRange(0, 4).Draw(t, "kind")
			if whole > 0 {
				s.Masters = []locksteward.MasterPass{{Complete: whole > 1}}
			}
			for _, key := range keys {
				if whole <= 1 && rapid.Bool().Draw(t, "missed") {
					continue
				}
				known := m.table[key]
				m.look(key, at.Add(time.Duration(rapid.Int64Range(0, int64(took)).Draw(t, "moment"))), &s)
				if known != nil && m.table[key] != known {
					ended[known.hold] = report.Hold{EndedAt: s.Endings[len(s.Endings)-1].At, Key: key}
				}
			}
			m.recorder.AddSweep(s)
			at = at.Add(took)
		}
		var lengths []time.Duration
		for h, e := range ended {
			got, ok := m.got[fmt.Sprint(e.Key, e.EndedAt.UnixNano())]
			if !ok {
				t.Fatalf("hold of %s from %s was not counted", h.key, h.from)
			}
			held := h.to.Sub(h.from)
			if held < got.Low || got.Bounded && held > got.High {
				t.Fatalf("held for %s, got %s to %s (%v)", held, got.Low, got.High, got.Bounded)
			}
			if h.claimed && !got.Bounded {
				t.Fatalf("the holder said since when, and the hold has no upper bound")
			}
			lengths = append(lengths, held)
		}
		m.quantiles(lengths)
	})
}

// quantiles compares what a report says with the truth.
func (m *model) quantiles(lengths []time.Duration) {
	slices.Sort(lengths)
	out := report.Build(report.Input{Rows: m.recorder.Rows()})
	if len(lengths) == 0 {
		if len(out.Classes) != 0 && out.Classes[0].Holds != 0 {
			m.t.Fatalf("holds out of nothing: %+v", out.Classes)
		}
		return
	}
	c := out.Classes[0]
	if c.Holds != int64(len(lengths)) {
		m.t.Fatalf("%d holds, want %d", c.Holds, len(lengths))
	}
	for q, got := range map[float64]*struct{ low, high int64 }{
		0.5:  {c.P50.AtLeastMs, orMost(c.P50.AtMostMs)},
		0.95: {c.P95.AtLeastMs, orMost(c.P95.AtMostMs)},
		0.99: {c.P99.AtLeastMs, orMost(c.P99.AtMostMs)},
	} {
		rank := max(1, int(math.Ceil(q*float64(len(lengths)))))
		if want := lengths[rank-1].Milliseconds(); want < got.low || want > got.high {
			m.t.Fatalf("quantile %v of %v is %d ms, got %d to %d", q, lengths, want, got.low, got.high)
		}
	}
}

func orMost(ms *int64) int64 {
	if ms == nil {
		return math.MaxInt64
	}
	return *ms
}
