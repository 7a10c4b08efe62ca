package soak_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
)

// sample is what an agent said about itself at a moment.
type sample struct {
	agent      string
	life       int
	at         time.Duration // since the begin of the load
	rss, live  float64       // bytes; live is what the last collection left of the heap
	goroutines float64
	stacks     map[string]int // what they do; nil if it did not tell
	files      float64
	cpu        float64 // seconds since its start
	blind      float64 // seconds
	watched    bool    // it reports its watch: it has the target
	delay      float64 // seconds, see locksteward_watch_delay_seconds
	missed     float64
	locks      float64
	leads      bool
	sweeps     float64 // when the last complete one ended
	load       float64 // of the machine, of one minute
}

// scrape asks an agent for its metrics.
func scrape(ctx context.Context, addr string) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	all, err := testagent.Scrape(ctx, addr)
	var s sample
	for _, one := range all {
		v := one.Value
		switch one.Name {
		case "process_resident_memory_bytes":
			s.rss = v
		case "go_gc_heap_live_bytes":
			s.live = v
		case "go_goroutines":
			s.goroutines = v
		case "process_open_fds":
			s.files = v
		case "process_cpu_seconds_total":
			s.cpu = v
		case "locksteward_watch_blind_seconds_total":
			s.blind += v
			s.watched = true
		case "locksteward_watch_delay_seconds":
			s.delay = max(s.delay, v)
		case "locksteward_watch_missed_total":
			s.missed += v
		case "locksteward_locks":
			s.locks += v
		case "locksteward_leader":
			s.leads = v == 1
		case "locksteward_sweep_last_success_timestamp_seconds":
			s.sweeps = v
		}
	}
	return s, err
}

// loadAverage is that of the last minute; 0 where there is no /proc.
func loadAverage() float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	f, _, _ := strings.Cut(string(raw), " ")
	v, _ := strconv.ParseFloat(f, 64)
	return v
}

// samples are all that was seen of the agents.
type samples struct {
	began time.Time

	mu     sync.Mutex
	list   []sample
	silent int                // scrapes that were not answered by an agent that should run
	last   map[string]float64 // the blind time that each life reported last
	dark   float64            // of all lives, seconds
	fell   []string           // counters of blind time that fell within a life
}

// ask asks an agent now; it says false while there is none to ask.
func (all *samples) ask(ctx context.Context, r *testagent.Agent) (sample, bool) {
	at := r.Where()
	if at.Metrics == "" {
		return sample{}, false
	}
	s, err := scrape(ctx, at.Metrics)
	if err != nil {
		if ctx.Err() == nil && r.Where() == at {
			all.mu.Lock()
			all.silent++
			all.mu.Unlock()
		}
		return sample{}, false
	}
	s.agent, s.life, s.at, s.load = r.Name, at.Life, time.Since(all.began), loadAverage()
	id := s.agent + " " + strconv.Itoa(s.life)
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.watched { // else another agent has the target
		if s.blind < all.last[id] {
			all.fell = append(all.fell, fmt.Sprintf("of %s from %.1f s to %.1f s at %s", id, all.last[id], s.blind, short(s.at)))
			all.last[id] = 0
		}
		all.dark += s.blind - all.last[id]
		all.last[id] = s.blind
	}
	return s, true
}

// run samples until ctx ends.
func (all *samples) run(ctx context.Context, replicas []*testagent.Agent) {
	tick := time.NewTicker(*every)
	defer tick.Stop()
	for {
		for _, r := range replicas {
			if s, ok := all.ask(ctx, r); ok {
				s.stacks = goroutinesOf(ctx, r)
				all.mu.Lock()
				all.list = append(all.list, s)
				all.mu.Unlock()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// blind is the blind time that all lives of all agents have reported.
func (all *samples) blind() (seconds float64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.dark
}
