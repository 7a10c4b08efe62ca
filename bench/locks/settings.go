package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// sections is a set of what can be measured.
type sections uint8

const (
	pairs sections = 1 << iota
	costs
	handoff
	dead
	renewal
)

var sectionNames = []string{"pairs", "costs", "handoff", "dead", "renewal"}

// String names the sections of the set.
func (s sections) String() string {
	var names []string
	for i, name := range sectionNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// MarshalText is String, for the JSON report.
func (s sections) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// settings are the flags.
type settings struct {
	in             sections
	json, markdown string

	Rounds       int             `json:"rounds"`
	Duration     time.Duration   `json:"duration_ns"`
	Warmup       time.Duration   `json:"warmup_ns"`
	TTL          time.Duration   `json:"ttl_ns"`
	Pool         int             `json:"pool"`
	Goroutines   []int           `json:"goroutines"`
	CostPairs    int             `json:"cost_pairs"`
	Contended    time.Duration   `json:"contended_ns"`
	Waiters      int             `json:"waiters"`
	Holds        []time.Duration `json:"holds_ns"`
	Dead         []int           `json:"dead"`
	Held         int             `json:"held"`
	RenewWindow  time.Duration   `json:"renew_window_ns"`
	RenewRounds  int             `json:"renew_rounds"`
	SectionNames sections        `json:"sections"`
}

// parse reads the flags; all that is wrong with them is in one error.
func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("locks", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&s.Rounds, "rounds", 5, "rounds of every cell; the tables show their median")
	f.DurationVar(&s.Duration, "duration", time.Second, "how long a cell of pairs lasts")
	f.DurationVar(&s.Warmup, "warmup", 300*time.Millisecond, "how long a cell runs before it counts")
	f.DurationVar(&s.TTL, "ttl", 30*time.Second, "lease of every lock")
	f.IntVar(&s.Pool, "pool", 0, "go-redis connections of one client; 0: its default, 10 per core")
	goroutines := f.String("goroutines", "1,16,64", "goroutines of the pairs")
	f.IntVar(&s.CostPairs, "cost-pairs", 2000, "pairs that the costs of one are taken from")
	f.DurationVar(&s.Contended, "contended", 3*time.Second, "how long a cell of waiters lasts")
	f.IntVar(&s.Waiters, "waiters", 32, "waiters for one lock")
	holds := f.String("holds", "0s,1ms,10ms", "how long a waiter holds the lock")
	killed := f.String("dead", "0,1,4", "how many killed waiters stand before the live one; the first is what the others are compared with")
	f.IntVar(&s.Held, "held", 10_000, "locks held and renewed by one client")
	f.DurationVar(&s.RenewWindow, "renew-window", 20*time.Second, "how long renewing is watched, after a third of the lease")
	f.IntVar(&s.RenewRounds, "renew-rounds", 1, "rounds of renewing, which lasts longer than all else")
	only := f.String("sections", strings.Join(sectionNames, ","), "what to measure")
	f.StringVar(&s.json, "json", "", "file to write everything to, each round included")
	f.StringVar(&s.markdown, "markdown", "", "file to write the tables to")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if f.NArg() > 0 {
		bad("unexpected argument %q: everything is a flag", f.Arg(0))
	}
	for word := range strings.SplitSeq(*only, ",") {
		set := sections(0)
		for i, name := range sectionNames {
			if strings.TrimSpace(word) == name {
				set = 1 << i
			}
		}
		if set == 0 {
			bad("-sections: want some of %s, got %q", strings.Join(sectionNames, ","), word)
		}
		s.in |= set
	}
	s.SectionNames = s.in
	s.Goroutines = numbers("-goroutines", *goroutines, 1, &errs)
	s.Dead = numbers("-dead", *killed, 0, &errs)
	for word := range strings.SplitSeq(*holds, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(word))
		if err != nil || d < 0 {
			bad("-holds: want durations of at least 0 with commas between, got %q", word)
			continue
		}
		s.Holds = append(s.Holds, d)
	}
	for _, n := range []struct {
		name  string
		value int
		least int
	}{
		{"-rounds", s.Rounds, 1},
		{"-renew-rounds", s.RenewRounds, 1},
		{"-pool", s.Pool, 0},
		{"-waiters", s.Waiters, 2},
		{"-held", s.Held, 1},
		{"-cost-pairs", s.CostPairs, 1},
	} {
		if n.value < n.least {
			bad("%s: want at least %d, got %d", n.name, n.least, n.value)
		}
	}
	for _, d := range []struct {
		name         string
		value, least time.Duration
	}{
		{"-duration", s.Duration, 10 * time.Millisecond},
		{"-warmup", s.Warmup, 0},
		{"-ttl", s.TTL, time.Second},
		{"-contended", s.Contended, 10 * time.Millisecond},
		{"-renew-window", s.RenewWindow, 10 * time.Millisecond},
	} {
		if d.value < d.least {
			bad("%s: want at least %s, got %s", d.name, d.least, d.value)
		}
	}
	return s, errors.Join(errs...)
}

func numbers(name, text string, least int, errs *[]error) []int {
	var list []int
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < least {
			*errs = append(*errs, fmt.Errorf("%s: want numbers of at least %d with commas between, got %q", name, least, word))
			continue
		}
		list = append(list, n)
	}
	return list
}
