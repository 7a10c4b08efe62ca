package rules

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// rendered are lines in a language.
func rendered(lang string, lines []locksteward.Message) []string {
	var out []string
	for _, l := range lines {
		out = append(out, catalogue.Text(lang, l))
	}
	return out
}

// value is what a line has that no language changes: numbers with what belongs to
// them (durations, times, versions, percent, ids), names with a sign in them, quoted names,
// and words that no text but code writes.
var value = regexp.MustCompile(`"[^"]*"|[\w:.@/{}*+-]*(?:\d|[:_/@]\w)[\w:.@/{}*+-]*|[A-Z]{3,}`)

// valuesOf are the values of a line. Punctuation around one is the sentence's own.
func valuesOf(line string) []string {
	var out []string
	for _, v := range value.FindAllString(line, -1) {
		if v = strings.TrimRight(v, ":.,;"); v != "TTL" {
			out = append(out, v)
		}
	}
	return out
}

// wantInChinese fails where a line of evidence says nothing in Chinese, or not what it
// says in English.
func wantInChinese(t *testing.T, rule string, f locksteward.Finding) {
	t.Helper()
	for _, l := range append(append([]locksteward.Message{f.Summary}, f.Evidence...), f.CounterEvidence...) {
		en, zh := catalogue.Text("en", l), catalogue.Text("zh", l)
		for _, wrong := range wrongIn(en, zh) {
			t.Errorf("%s: %s\n%s\n%s", rule, wrong, en, zh)
		}
	}
}

// wrongIn says what is wrong with the Chinese of a line.
func wrongIn(en, zh string) []string {
	var out []string
	if en == zh || !strings.ContainsFunc(zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		out = append(out, "no Chinese")
	}
	if strings.Contains(en+zh, "%!") {
		out = append(out, "a format without its value")
	}
	for _, v := range valuesOf(en) {
		if strings.Count(zh, v) < strings.Count(en, v) {
			out = append(out, v+" is missing")
		}
	}
	// A name beside a letter is not found by those who hide names (alert/keynames.go).
	var before rune
	for _, r := range zh {
		if unicode.Is(unicode.Han, r) && isNamed(before) || isNamed(r) && unicode.Is(unicode.Han, before) {
			out = append(out, string([]rune{before, r})+" stand together")
		}
		before = r
	}
	return out
}

func isNamed(r rune) bool { return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// The test of lines finds what it is for.
func TestLinesWithoutChineseAreFound(t *testing.T) {
	t.Parallel()
	for _, l := range [][2]string{
		{"never renewed"},
		{"never renewed", "never renewed"},
		{"seen 3 times", "看到过"},
		{"in 2 looks, 2 too few", "看到 2 次"},
		{"lock job:1 is held", "锁被持有"},
		{"PERSIST was called", "被调用"},
		{"lock a is held", "锁a被持有"},
		{`class "x" says so`, "如 class 所写"},
		{"1m30s ago", "1m 前"},
	} {
		if len(wrongIn(l[0], l[1])) == 0 {
			t.Errorf("nothing is found in %+v", l)
		}
	}
	if wrong := wrongIn("lock job:1: 3 looks, TTL 1m30s left", "锁 job:1：看到 3 次，距过期还有 1m30s"); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// What no fixture makes a rule say is in both languages too.
func TestLinesBeyondFixtures(t *testing.T) {
	t.Parallel()
	hour := after(-time.Hour)
	lock := lockAt("lock:a", t0)
	lock.TTL = locksteward.NoExpiry
	claimed := ourLock("redis", "lock:a", "c1", "s1", hour)
	claimed.Claim.Renewals, claimed.Claim.Purpose = 1, "nightly run"
	unheard := locksteward.MissingHeartbeat{Successor: &locksteward.Instance{ID: "NEW", Started: hour}, Instance: locksteward.Instance{ID: "OLD", Slot: "a/1"}}
	hidden, renewed := age{shown: time.Hour, turnover: turnoverHidden}, age{shown: time.Hour, proven: time.Minute, turnover: turnoverRenewed}
	lines := []locksteward.Message{
		ttlLine(&lock), waitersLine(&locksteward.Lock{Observation: locksteward.Observation{Waiters: 1}}),
		minimumLine(&lock, hidden), minimumLine(&lock, renewed), purposeLine(&claimed), renewalsLine(&claimed, 1), renewalsLine(&lock, 1),
		holdLine(&claimed), heldByLine(&claimed), countWaits(1), ageLine(&claimed, age{basis: locksteward.AgeClaimed}),
		message("wait/starved.longest-since", t0, whoWaits(locksteward.Waiter{Session: "s1"})),
		proofLine(&unheard), lastHeartbeatLine(&unheard), groundLine(&unheard, locksteward.Presumed),
		listenersLine(&locksteward.MissingHeartbeat{Listeners: 1}), listenersLine(&locksteward.MissingHeartbeat{Listeners: 3}), listenersLine(&locksteward.MissingHeartbeat{Listeners: -1}),
		unknownLine(&Quorum{Unknown: []string{"m1", "m2"}}), counterLine(&locksteward.FenceDrop{Counter: "locksteward:fence:{7}"}),
		livingLine(1), livingLine(2), lostLine(staleGroup{signs: []sign{{lost: true}}}), locksLine([]string{"a:1", "a:2"}, 9), maxHoldLine(maxHeld(claimed), t0),
		deadlineLine(&locksteward.Loss{At: t0}), lastBeatLine(time.Time{}), lastBeatLine(t0), fenceLine(&locksteward.Loss{Claim: locksteward.Claim{Fence: 41}}),
		heldLine(&locksteward.Loss{Claim: locksteward.Claim{Acquired: hour, RenewEvery: 10 * time.Second}}),
		size(12), message("names.more", size(3<<20), 1), message("names.more", size(5<<30), 1),
		snapshotsLine([]locksteward.NodeState{{Addr: "n1:6379", LastSave: hour, ChangesUnsaved: 1}}),
		orderLine(Order{First: "jobs", Then: "stock", FirstKey: "job:1", ThenKey: "stock:2", At: t0, Session: "s1"}),
	}
	for _, kind := range []locksteward.ServerEventKind{
		locksteward.ServerRestarted, locksteward.ServerFailedOver, locksteward.ServerEvicted, locksteward.ServerFlushed, locksteward.ServerClockStepped, "later",
	} {
		for _, e := range []locksteward.ServerEvent{{Count: 1, Step: time.Minute}, {Count: 7, Step: -time.Minute, After: hour, Was: "n2:6379"}} {
			e.Kind, e.Node, e.At = kind, "n1:6379", t0
			lines = append(lines, eventLine(e))
		}
	}
	for _, asked := range []bool{true, false} {
		l := lock
		l.Acquired, l.Asked = after(time.Minute), asked
		lines = append(lines, writtenDoubtLine(&l))
	}
	l := lock
	l.TTL, l.Acquired = time.Hour, after(-48*time.Hour)
	lines = append(lines, writtenDoubtLine(&l))
	nodes := make([]locksteward.NodeState, maxExamples+2)
	for i := range nodes {
		nodes[i] = locksteward.NodeState{Addr: fmt.Sprint("n:", i)}
	}
	nodes[0].LastSaveOK, nodes[1].AOF = true, true
	lines = append(lines, nodeLines(nodes, whyLost)...)
	round := Cycle{Members: make([]CycleMember, maxCycleLines+3)}
	for i := range round.Members {
		round.Members[i] = CycleMember{
			Session: fmt.Sprint("s", i), Holds: fmt.Sprint("lock:", i), Target: "one", DB: 2, Calls: 2, Inferred: true, Purpose: "nightly run",
			Waits: locksteward.Waiter{Target: "two", DB: 3, Key: "lock:b", Since: hour},
		}
	}
	lines = append(lines, cycleLines(&round, t0)...)
	lines = append(lines, cycleOnceLine(&round), cycleInferredLine(&round), cycleCallsLine(&round))
	for _, l := range lines {
		en, zh := catalogue.Text("en", l), catalogue.Text("zh", l)
		for _, wrong := range wrongIn(en, zh) {
			t.Errorf("%s\n%s\n%s", wrong, en, zh)
		}
	}
}

func maxHeld(l locksteward.Lock) *locksteward.Lock {
	l.Claim.MaxHold = 2 * time.Hour
	return &l
}

// Each kind of token that a format calls shared has a name in Chinese.
func TestKindsOfTokensAreInChinese(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{unknownKind: true}
	for _, value := range []string{
		"", "1", "1234", "locked", "----", "00000000-0000-0000-0000-000000000000", "10.0.0.1:6379", "web-3:4711", "abc", "worker thread 7",
	} {
		d := formats.Recognise(formats.Sample{Key: "lock:a", Type: "string", Value: []byte(value), Size: int64(len(value))})
		if !d.SharedToken {
			t.Errorf("%q is no shared token: %+v", value, d)
		}
		seen[d.TokenKind] = true
	}
	if len(seen) != len(tokenKinds) {
		t.Errorf("%d kinds are tried, %d have messages", len(seen), len(tokenKinds))
	}
	for kind := range seen {
		if tokenKinds[kind].ID == "" {
			t.Errorf("%q has no message", kind)
		}
	}
}
