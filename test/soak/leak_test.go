package soak_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The judgement of memory must see what grows, and must not take the sawtooth of a
// collector, or what a target costs, for that.
func TestVerdictSeesWhatGrows(t *testing.T) {
	t.Parallel()
	const every = 10 * time.Second
	// life is 25 minutes of an agent that has the target but for three times three
	// minutes; as what makes a sample of the time.
	life := func(as func(at time.Duration, leads bool, s *sample)) []sample {
		var list []sample
		for n := range 150 {
			at := time.Duration(n) * every
			s := sample{agent: "r1", life: 1, at: at, leads: n%50 >= 20, rss: 200e6, live: 100e6, goroutines: 60, files: 40}
			if !s.leads {
				s.rss, s.live, s.goroutines = 60e6, 10e6, 40
			}
			as(at, s.leads, &s)
			list = append(list, s)
		}
		return list
	}
	for _, c := range []struct {
		name, wrong string
		as          func(at time.Duration, leads bool, s *sample)
	}{
		{"flat", "", func(time.Duration, bool, *sample) {}},
		{"a sawtooth", "", func(at time.Duration, _ bool, s *sample) { s.rss += float64(at/every%7) * 5e6 }},
		{"a burst of work", "", func(at time.Duration, _ bool, s *sample) {
			if at > 20*time.Minute && at < 22*time.Minute {
				s.rss, s.live = s.rss+60e6, s.live+40e6
			}
		}},
		{"a leak while it works", "with the target, from 4m20s to 24m50s: live heap grows", func(at time.Duration, leads bool, s *sample) {
			if leads {
				s.live += at.Seconds() * 0.1e6
			}
		}},
		{"resident memory alone", "with the target, from 4m20s to 24m50s: resident memory grows", func(at time.Duration, _ bool, s *sample) {
			s.rss += at.Seconds() * 0.1e6
		}},
		{"something kept of each take-over", "without the target, from 9m20s to 19m50s: live heap grows", func(at time.Duration, _ bool, s *sample) {
			s.live += float64(at/(500*time.Second)) * 10e6
		}},
		{"nothing before its first target", "", func(at time.Duration, _ bool, s *sample) {
			if at < 200*time.Second {
				s.rss, s.live = 30e6, 2e6
			}
		}},
		{"little before its first stretch with the target", "", func(at time.Duration, _ bool, s *sample) {
			s.leads = s.leads || at < 20*time.Second // too short to count
			if at < 200*time.Second {
				s.rss, s.live = 30e6, 2e6
			}
		}},
		{"goroutines", "goroutines grow", func(at time.Duration, _ bool, s *sample) { s.goroutines += at.Minutes() * 4 }},
		{"open files of each take-over", "open files grow", func(at time.Duration, _ bool, s *sample) { s.files += float64(at/(500*time.Second)) * 5 }},
	} {
		list := stretches(life(c.as))
		if len(list) != 6 {
			t.Errorf("%s: %d stretches with samples enough", c.name, len(list))
		}
		var wrong []string
		for _, s := range list {
			wrong = append(wrong, s.judge()...)
		}
		wrong = append(wrong, drift(list)...)
		if all := strings.Join(wrong, "\n"); c.wrong == "" && all != "" || !strings.Contains(all, c.wrong) {
			t.Errorf("%s: %q", c.name, all)
		}
	}
}

// An agent that nobody disturbs is judged by one line.
func TestVerdictSeesALeakWithoutFaults(t *testing.T) {
	t.Parallel()
	var list []sample
	for n := range 60 {
		list = append(list, sample{agent: "r1", life: 1, at: time.Duration(n) * 10 * time.Second, leads: true, rss: 200e6, live: 100e6 + float64(n)*1e6})
	}
	got := stretches(list)
	if len(got) != 1 || got[0].from != warm || len(got[0].judge()) != 1 || !strings.Contains(got[0].judge()[0], "with the target, from 2m0s to 9m50s: live heap grows by 47.0 MB") {
		t.Errorf("%+v", got)
	}
}

// What is notified of goroutines is read out of a log, and only what became more of is shown.
func TestCrowd(t *testing.T) {
	t.Parallel()
	reported := func(line string) map[string]int { return goroutinesIn([]byte(line)) }
	if got := reported(`{"level":"info","msg":"sweep ended","groups":[{"count":1,"stack":"x"}]}`); got != nil {
		t.Errorf("another line reports %v", got)
	}
	few := reported(`{"level":"info","msg":"goroutines","total":3,"groups":[{"count":2,"stack":"net.read < a/b.serve < began in a/b.start"},{"count":1,"stack":"c.stays"}]}`)
	many := reported(`{"level":"info","msg":"goroutines","total":16,"groups":[{"count":14,"stack":"net.read < a/b.serve < began in a/b.start"},{"count":1,"stack":"c.stays"},{"count":1,"stack":"d.new"}]}`)
	list := []sample{
		{agent: "r1", life: 1, at: 1 * time.Minute, goroutines: 3, stacks: few},
		{agent: "r1", life: 1, at: 2 * time.Minute, goroutines: 40}, // did not tell
		{agent: "r1", life: 1, at: 3 * time.Minute, goroutines: 16, stacks: many},
		{agent: "r2", life: 1, at: 4 * time.Minute, goroutines: 90, stacks: many},
		{agent: "r1", life: 1, at: 9 * time.Minute, goroutines: 90, stacks: many},
	}
	got := crowd("r1", 1, time.Minute, 5*time.Minute, list)
	want := []string{
		"| r1 | 1 | 1m0s: 3 | 3m0s: 16 | 12 | `net.read < b.serve < began in b.start` |",
		"| r1 | 1 | 1m0s: 3 | 3m0s: 16 | 1 | `d.new` |",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := crowd("r1", 1, time.Minute, 2*time.Minute, list); got != nil {
		t.Errorf("one sample reports %q", got)
	}
}
