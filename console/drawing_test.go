package console

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/api"
)

// A drawing is the same each time, no two boxes lie on each other, and where there
// is no round every line leads to the right.
func TestLayOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "nodes")
		acyclic := rapid.Bool().Draw(t, "acyclic")
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprintf("n%02d", i))
		}
		var arrows []arrow
		for range rapid.IntRange(0, 60).Draw(t, "arrows") {
			if n == 0 {
				break
			}
			from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
			if acyclic && from > to {
				from, to = to, from
			}
			arrows = append(arrows, arrow{ids[from], ids[to]})
		}
		boxes, width, height := layOut(ids, arrows)
		again, _, _ := layOut(ids, arrows)
		taken := map[[2]int]string{}
		for _, id := range ids {
			b := boxes[id]
			if *b != *again[id] {
				t.Fatalf("%s moves: %+v, %+v", id, *b, *again[id])
			}
			at := [2]int{b.x, b.y}
			if taken[at] != "" {
				t.Fatalf("%s lies on %s", id, taken[at])
			}
			taken[at] = id
			if b.x < 0 || b.y < 0 || b.x+nodeWidth > width || b.y+nodeHeight > height {
				t.Fatalf("%s is outside: %+v of %d x %d", id, *b, width, height)
			}
		}
		if acyclic {
			for _, a := range arrows {
				if a.from != a.to && boxes[a.from].col >= boxes[a.to].col {
					t.Fatalf("%s to %s leads back: columns %d, %d", a.from, a.to, boxes[a.from].col, boxes[a.to].col)
				}
			}
		}
	})
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	now := at.Add(time.Hour)
	events := []api.LockEvent{ // newest first
		{At: at.Add(50 * time.Minute), Kind: "firing", Rule: "ttl/none", Severity: "critical"},
		{At: at.Add(48 * time.Minute), Kind: "pending", Rule: "ttl/none"},
		{At: at.Add(40 * time.Minute), Kind: "acquired"},
		{At: at.Add(30 * time.Minute), Kind: "expired", HeldMs: 600_000},
		{At: at.Add(25 * time.Minute), Kind: "renewed"},
		{At: at.Add(15 * time.Minute), Kind: "released", HeldMs: 60_000},
		{At: at.Add(10 * time.Minute), Kind: "resolved", Rule: "hold/too-long"},
		{At: at, Kind: "firing", Rule: "hold/too-long", Severity: "warning"},
	}
	l := aLock("lock:order:42", 20*time.Minute)
	l.At = now
	l.History.FirstSeen = now.Add(-20 * time.Minute)
	got := newTimeline(events, &l, now)
	// Whatever ends a hold, the hold is drawn.
	for _, kind := range api.EndKinds {
		list := []api.LockEvent{{At: at.Add(30 * time.Minute), Kind: kind, HeldMs: 600_000}}
		if one := newTimeline(list, nil, now); len(one.Lanes) != 1 || len(one.Lanes[0].Bars) != 1 {
			t.Errorf("a hold that ended with %q is drawn as %+v", kind, one.Lanes)
		}
	}
	var said []string
	for _, lane := range got.Lanes {
		for _, b := range lane.Bars {
			said = append(said, fmt.Sprintf("%s %s %.0f+%.0f", lane.Name, b.Tone, b.X, b.W))
		}
	}
	want := "holds good 233+17, holds warning 333+167, holds held 667+333, renewals calm 417+3, hold/too-long warning 0+167, ttl/none pending 800+33, ttl/none critical 833+167"
	if strings.Join(said, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(said, ", "), want)
	}
	// A hand-off: the next hold is seen before the end of the one before is recorded.
	handOff := []api.LockEvent{
		{At: at.Add(40 * time.Minute), Kind: "force-released", TokenDigest: "a"},
		{At: at.Add(40 * time.Minute), Kind: "acquired", TokenDigest: "b"},
		{At: at.Add(20 * time.Minute), Kind: "acquired", TokenDigest: "a"},
	}
	l.TokenDigest = "b"
	if bars := newTimeline(handOff, &l, now).Lanes[0].Bars; len(bars) != 2 || bars[0].X != 0 || bars[0].W != 500 || bars[1].X != 500 || bars[1].W != 500 {
		t.Errorf("a hand-off is drawn as %+v", bars)
	}
	if empty := newTimeline(nil, nil, now); len(empty.Lanes) != 0 {
		t.Errorf("nothing is drawn as %+v", empty)
	}
}

func TestManual(t *testing.T) {
	t.Parallel()
	got := string(manual("# Title\n\n| a |\n|---|\n\n## What <it> finds\n\nA `PTTL` of **two\nlines** [other](../hold/lost.md#x), [same](too-long.md), [else](../../libraries/README.md), [web](https://redis.io/x).\n\n- one\n- two\n  more\n\n```yaml\na: <b>\n```\n\n| h | i |\n|---|---|\n| `c` | d |\n", "ttl"))
	want := "<h2>What &lt;it&gt; finds</h2>\n<p>A <code>PTTL</code> of <b>two lines</b> <a href=\"/rules/hold/lost\">other</a>, <a href=\"/rules/ttl/too-long\">same</a>, else, <a href=\"https://redis.io/x\" rel=\"noreferrer\">web</a>.</p>\n" +
		"<ul><li>one</li><li>two more</li></ul>\n<pre tabindex=\"0\">a: &lt;b&gt;</pre>\n<table><tbody><tr><th>h</th><th>i</th></tr><tr><td><code>c</code></td><td>d</td></tr></tbody></table>\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Text is readable for people who see less: WCAG AA, in light and in dark.
func TestColoursHaveContrast(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("web/console.css")
	if err != nil {
		t.Fatal(err)
	}
	colours := map[string][2]float64{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): (?:light-dark\()?(#[0-9a-f]{6})(?:, (#[0-9a-f]{6})\))?;`).FindAllStringSubmatch(string(raw), -1) {
		dark := m[3]
		if dark == "" {
			dark = m[2]
		}
		colours[m[1]] = [2]float64{luminance(t, m[2]), luminance(t, dark)}
	}
	check := func(least float64, front string, backs ...string) {
		t.Helper()
		for _, back := range backs {
			for mode, name := range []string{"light", "dark"} {
				a, b := colours[front][mode], colours[back][mode]
				if a == 0 && b == 0 {
					t.Fatalf("%s or %s is no colour", front, back)
				}
				if ratio := (max(a, b) + .05) / (min(a, b) + .05); ratio < least {
					t.Errorf("%s on %s in the %s: %.2f, want %.1f", front, back, name, ratio, least)
				}
			}
		}
	}
	for _, text := range []string{"ink", "dim", "link", "critical", "warning", "good"} {
		check(4.5, text, "bg", "card")
	}
	for _, text := range []string{"ink", "dim"} {
		check(4.5, text, "sunk", "critical-wash", "warning-wash")
	}
	for _, tone := range []string{"critical", "warning", "good"} {
		check(4.5, tone, tone+"-wash")
	}
	check(4.5, "link", "critical-wash", "warning-wash")
	check(4.5, "on-button", "button", "danger")
	check(3, "field", "card", "bg")
	check(3, "held", "card")
}

// luminance is WCAG's relative luminance of #rrggbb.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
