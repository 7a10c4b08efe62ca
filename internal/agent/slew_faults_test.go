package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// Of three agents on one server one has clocks that run half as fast again, and one such
// that lose a second in four, the monotonic ones too: none has a verdict more than a
// second away from those of the third, whose clocks are true, neither reported nor ended, and
// all say the same ages. No sweep helps: the next one is in an hour.
// fault: 9
func TestClocksThatRunAtAnotherRate(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	const apart = time.Second
	type one struct {
		clocked
		e *ear
	}
	var all []one // the first has the true clocks
	for _, rate := range []float64{1, 1.5, 0.75} {
		e := newEar(t)
		b := layBed(t, strings.Replace(target(srv.URL()), "@every 1s", "@every 1h", 1)+`
classes:
  - {class: soon, match: ["lock:soon:*"], expect: 12s, ttl: allowed-none}
  - {class: late, match: ["lock:late:*"], expect: 20s, ttl: allowed-none}
  - {class: ends, match: ["lock:ends:*"], expect: 1s}
`+receivers("ops", e.url), "")
		a := testagent.New(t, testagent.Options{Name: fmt.Sprintf("rate %v", rate), File: b.file, Clocked: true, Rate: rate})
		all = append(all, one{clocked{a, b}, e})
		a.Start()
	}
	for _, a := range all {
		testredis.Eventually(t, within, func() bool {
			return strings.Contains(get("http://"+a.Where().Metrics+"/metrics"), `locksteward_watch_mode{mode="tracking",target="main"} 1`)
		}, a.Name+" does not watch")
	}
	began := time.Now()
	for key, ttl := range map[string]time.Duration{"lock:soon:1": 0, "lock:late:1": 0, "lock:ends:1": 16 * time.Second} {
		set(t, rdb, key, token, ttl)
	}
	// After so long a clock of these rates is five seconds off and more.
	for finding, due := range map[string]time.Duration{
		"lock:soon:1 firing": 12 * time.Second, "lock:late:1 firing": 20 * time.Second, "lock:ends:1 resolved": 16 * time.Second,
	} {
		t.Run(finding, func(t *testing.T) {
			t.Parallel()
			var first received
			for i, a := range all {
				var got received
				testredis.Eventually(t, due+within, func() bool {
					for _, h := range a.e.of("") {
						if h.finding() == finding {
							got = h
							return true
						}
					}
					return false
				}, a.Name+" does not tell it")
				if i == 0 {
					first = got
				}
				reported, by := got.at.Sub(first.at), got.Findings[0].At.Sub(first.Findings[0].At)
				t.Logf("%s: reported after %s, by the server's clock %s from the one with true clocks", a.Name, got.at.Sub(began), by)
				if reported.Abs() > apart || by.Abs() > apart {
					t.Errorf("%s: reported %s and decided %s after the one with true clocks", a.Name, reported, by)
				}
			}
			if strings.HasSuffix(finding, "resolved") {
				return
			}
			key := strings.TrimSuffix(finding, " firing")
			for _, a := range all {
				least := time.Since(began)
				d, err := a.as("ana").Lock(t.Context(), "main", nil, key, "en")
				if err != nil || d.AgeMs == nil {
					t.Fatalf("%s: %+v, %v", a.Name, d, err)
				}
				if age := time.Duration(*d.AgeMs) * time.Millisecond; age < least-apart || age > time.Since(began)+apart {
					t.Errorf("%s: %s old after %s", a.Name, age, least)
				}
			}
		})
	}
}
