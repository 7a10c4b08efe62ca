package demo

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward/api"
)

func TestRender(t *testing.T) {
	t.Parallel()
	l := line{{text: "ab", style: red}, {text: "cd≥ef"}, {text: "  "}}
	for _, c := range []struct {
		width  int
		colour bool
		want   string
	}{
		{0, false, "abcd≥ef"},
		{20, true, "\x1b[31mab\x1b[0mcd≥ef"},
		{5, false, "abcd…"},
		{3, true, "\x1b[31mab\x1b[0m…"},
		{1, false, "…"},
	} {
		if got := l.render(c.width, c.colour); got != c.want {
			t.Errorf("render(%d, %t) = %q, want %q", c.width, c.colour, got, c.want)
		}
	}
	for i, l := range columns([]line{{{text: "a"}, {text: "bb"}, {text: "c"}}, {{text: "aaa≥"}, {text: "b"}, {text: "c"}}}) {
		if got := strings.Index(l.render(0, false), "c"); got != 12 && i == 0 {
			t.Errorf("column 3 begins at %d: %q", got, l.render(0, false))
		}
	}
	for _, l := range wrap(strings.Repeat("some words ", 40), 30) {
		if utf8.RuneCountInString(l) > 30 || strings.HasPrefix(l, " ") {
			t.Errorf("wrapped line %q", l)
		}
	}
}

// The screen never has more lines than the terminal, and keeps the head and the
// newest of what grows.
func TestFit(t *testing.T) {
	t.Parallel()
	many := make([]line, 40)
	for i := range many {
		many[i] = text(strings.Repeat("x", i))
	}
	parts := func() []part {
		return []part{
			{lines: many[:5], least: 5},
			{title: "A", lines: many[:10], least: 3},
			{title: "B", lines: many, least: 2, fromEnd: true},
		}
	}
	for rows := range 80 {
		if got := len(fit(parts(), rows)); got > rows {
			t.Errorf("%d lines on %d rows", got, rows)
		}
	}
	screen := fit(parts(), 24)
	if got := screen[len(screen)-1].render(0, false); got != strings.Repeat("x", 39) {
		t.Errorf("the newest line is cut: %q", got)
	}
}

func TestMissingIsNamed(t *testing.T) {
	t.Parallel()
	b := newBoard(ownScene(), nil)
	b.saw(nil, []api.Finding{
		{Rule: "ttl/none", Key: api.NewKey("demo:stock:sku-9"), Status: "firing", Fingerprint: "a"},
		{Rule: "hold/too-long", Key: api.NewKey("demo:order:42"), Status: "pending", Fingerprint: "b"},
		{Rule: "hold/too-long", Key: api.NewKey("lock:theirs"), Status: "firing", Fingerprint: "c"},
	})
	b.failed(errors.New("no agent"))
	r := &running{board: b, agent: &agentRun{}, log: &tail{}}
	if _, err := r.log.Write([]byte("it went wrong\n")); err != nil {
		t.Fatal(err)
	}
	err := r.explain(errLimit)
	if !errors.Is(err, errLimit) {
		t.Errorf("%v is not errLimit", err)
	}
	for _, want := range []string{"hold/too-long on demo:order:42", "holder/shared-token on class invoices", "no agent", "it went wrong"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	for _, not := range []string{"ttl/none", "theirs"} {
		if strings.Contains(err.Error(), not) {
			t.Errorf("%q names %q", err, not)
		}
	}
}

// A finding that was seen stays, so that one which comes and goes between two
// looks of a person is not lost.
func TestSeenStays(t *testing.T) {
	t.Parallel()
	b := newBoard(ownScene(), nil)
	f := api.Finding{Rule: "renewal/failing", Key: api.NewKey("demo:import:eu"), Status: "firing", Fingerprint: "a"}
	b.saw(nil, []api.Finding{f})
	b.saw(nil, nil)
	b.look(func(s *state) {
		seen := s.seen(expectation{rule: f.Rule, key: f.Key.Key})
		if seen == nil || !seen.gone {
			t.Errorf("got %+v", seen)
		}
	})
}

func TestSinkTakesOnlySigned(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	hook, err := listenSink()
	if err != nil {
		t.Fatal(err)
	}
	b := newBoard(ownScene(), nil)
	hook.serve(b, key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Post(hook.url(), "application/json", strings.NewReader(`{"findings":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("an unsigned message got %s", resp.Status)
	}
	if err := errors.Join(resp.Body.Close(), hook.stop(t.Context())); err != nil {
		t.Error(err)
	}
}

// The embedded server's clock runs by itself, and an expiry stands still.
func TestEmbeddedClock(t *testing.T) {
	t.Parallel()
	s, err := startEmbedded("for the test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close() //nolint:errcheck // It returns none.
	conn, rdb, err := dial(t.Context(), s.connect, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // Nothing is buffered in it.
	ctx := t.Context()
	if err := rdb.Set(ctx, "k", "v", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	at := rdb.Do(ctx, "pexpiretime", "k").Val()
	for rdb.Exists(ctx, "k").Val() == 1 {
		now := rdb.Do(ctx, "pexpiretime", "k").Val()
		if now != at && now != int64(-2) {
			t.Fatalf("the expiry moved from %v to %v", at, now)
		}
	}
	if err := rdb.HSet(ctx, "h", "f", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := rdb.MemoryUsage(ctx, "h", 64).Result(); err != nil || n <= 0 {
		t.Errorf("MEMORY USAGE … SAMPLES: %d, %v", n, err)
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	s := scene{prefix: "demo:abcdefgh:"}
	for key, want := range map[string]bool{
		"demo:abcdefgh:order:42":                         true,
		"locksteward:exec:{demo:abcdefgh:order:42}":      true,
		"demo:order:42":                                  false,
		"x:demo:abcdefgh:order:42":                       false,
		"locksteward:hold:{x}:demo:abcdefgh:order:42":    false,
		"locksteward:exec:{demo:abcdefghi:order:42}":     false,
		"demo:abcdefgh:locksteward:hold:{demo:abcdefgh}": true,
	} {
		if got := s.wrote(key); got != want {
			t.Errorf("wrote(%q) = %t", key, got)
		}
	}
	if a, b := guestScene(), guestScene(); a == b {
		t.Errorf("two runs have one prefix %q", a.prefix)
	}
}
