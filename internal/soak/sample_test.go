package soak_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sample is what an agent said about itself at a moment.
type sample struct {
	agent      string
	life       int
	at         time.Duration // since the begin of the load
	rss, live  float64       // bytes; live is what the last collection left of the heap
	goroutines float64
	files      float64
	cpu        float64 // seconds since its start
	blind      float64 // seconds
	watched    bool    // it tells of its watch: it has the target
	delay      float64 // seconds, see locksteward_watch_delay_seconds
	missed     float64
	locks      float64
	leads      bool
	sweeps     float64 // when the last complete one ended
	load       float64 // of the machine, of one minute
}

var scraper = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 8 * time.Second}

// scrape asks an agent for its metrics.
func scrape(ctx context.Context, addr string) (sample, error) {
	var s sample
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return s, err
	}
	resp, err := scraper.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, errors.New(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		name, _, _ := strings.Cut(line[:i], "{")
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			continue
		}
		switch name {
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
	return s, lines.Err()
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
	last   map[string]float64 // the blind time that each life told of last
	dark   float64            // of all lives, seconds
	fell   []string           // counters of blind time that fell within a life
}

// ask asks an agent now; it says false while there is none to ask.
func (all *samples) ask(ctx context.Context, r *replica) (sample, bool) {
	addr, life := r.at()
	if addr == "" {
		return sample{}, false
	}
	s, err := scrape(ctx, addr)
	if err != nil {
		if again, same := r.at(); ctx.Err() == nil && again == addr && same == life {
			all.mu.Lock()
			all.silent++
			all.mu.Unlock()
		}
		return sample{}, false
	}
	s.agent, s.life, s.at, s.load = r.name, life, time.Since(all.began), loadAverage()
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
func (all *samples) run(ctx context.Context, replicas []*replica) {
	tick := time.NewTicker(*every)
	defer tick.Stop()
	for {
		for _, r := range replicas {
			if s, ok := all.ask(ctx, r); ok {
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

// blind is the blind time that all lives of all agents have told of.
func (all *samples) blind() (seconds float64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.dark
}
