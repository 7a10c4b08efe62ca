package doctor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis/connect"
)

const (
	pages     = 64          // of SCAN, at most, on each master
	pageCount = 100         // its COUNT, as the scanner begins
	lookAgain = time.Second // at the sampled locks, whether they are there still
	reads     = 200         // keys read to see what a look costs

	// historyRow is what the store keeps of a lock that stands for over 5 s, eventRow
	// what it keeps of the end of one, at most eventRows of them: see
	// TestRowsAreMeasured.
	historyRow = 300
	eventRow   = 450
	eventRows  = 200_000

	// agentConnections are the most that one agent has to a master: the pool, the
	// tracker and the subscriber of the watch, and one more during a release.
	agentConnections = connect.DefaultPoolSize + 2 + 1
)

// sample is what was seen of one master.
type sample struct {
	keys, seen, locks, read int64
	perKey, perRead         time.Duration // server time
	lockKeys                []string
	classes                 map[string]bool // of the keys that were seen
	whole                   bool            // all keys were seen
	at                      time.Time
}

func (e *exam) forecast(ctx context.Context) {
	f := &Forecast{ConnectionsPerMaster: agentConnections}
	var server time.Duration
	for _, m := range e.masters {
		e.connections(m)
	}
	if len(e.samples) < len(e.masters) {
		return // said already
	}
	for _, m := range e.masters {
		s := e.samples[m.Addr]
		f.Keys, f.Sampled = f.Keys+s.keys, f.Sampled+s.seen
		locks, read := s.extrapolate(s.locks), s.extrapolate(s.read)
		f.Locks, f.Read = f.Locks+locks, f.Read+read
		server += time.Duration(s.keys)*s.perKey + time.Duration(read)*s.perRead
	}
	e.unmatched(f)
	f.ServerMs = ms(server)
	e.report.Forecast = f
	e.sweep(f, server)
	e.growth(ctx, f)
}

// unmatched names the classes that none of the keys belongs to: their patterns may be misspelt.
func (e *exam) unmatched(f *Forecast) {
	whole := true
	var names []string
	for _, s := range e.samples {
		whole = whole && s.whole
	}
	for _, c := range e.Classes.All() {
		if len(c.Match) > 0 && !slices.ContainsFunc(e.masters, func(m connect.Master) bool { return e.samples[m.Addr].classes[c.Name] }) {
			names = append(names, strconv.Quote(c.Name))
		}
	}
	switch {
	case len(names) == 0:
	case whole && f.Keys > 0:
		e.report.add("classes", Warn, "", fmt.Sprintf("none of the %d keys belongs to class %s", f.Keys, strings.Join(names, ", ")), "look whether their patterns (match) are spelt as the keys are; a lock that is not held now has no key")
	case f.Keys > 0:
		e.report.add("classes", OK, "", fmt.Sprintf("none of %d sampled keys of %d belongs to class %s", f.Sampled, f.Keys, strings.Join(names, ", ")), "")
	}
}

// sampleAll reads a part of each master's keys. The locks among them are looked
// at again at the end.
func (e *exam) sampleAll(ctx context.Context) {
	for _, m := range e.masters {
		s, err := e.sample(ctx, m)
		if err != nil {
			e.report.add("sweep", Warn, m.Addr, "no forecast: the keys cannot be sampled", connect.Explain(err))
			continue
		}
		e.samples[m.Addr] = s
	}
}

// connections compares what an agent needs with what the server has left.
func (e *exam) connections(m connect.Master) {
	in := e.infos[m.Addr]
	used, limit := in.number("connected_clients"), in.number("maxclients")
	need := fmt.Sprintf("one agent has up to %d open to a master", agentConnections)
	switch {
	case used < 0 || limit < 0:
		e.report.add("connections", OK, m.Addr, need+"; the server does not tell how many it has left", "")
	case limit-used < agentConnections:
		e.report.add("connections", Fail, m.Addr, fmt.Sprintf("%d of %d are in use; %s", used, limit, need), "raise maxclients or close some")
	case float64(used) > 0.9*float64(limit):
		e.report.add("connections", Warn, m.Addr, fmt.Sprintf("%d of %d are in use; %s", used, limit, need), "raise maxclients or close some: lockers are refused too")
	default:
		e.report.add("connections", OK, m.Addr, fmt.Sprintf("%d of %d are in use; %s", used, limit, need), "")
	}
}

// sample reads some pages of names, and some keys as a sweep would.
func (e *exam) sample(ctx context.Context, m connect.Master) (*sample, error) {
	s := &sample{at: time.Now(), classes: map[string]bool{}}
	s.keys = int64(max(0, e.infos[m.Addr].part("db"+strconv.Itoa(e.conn.DB()), "keys")))
	before := scanStats(ctx, m)
	var toRead []string
	var took time.Duration
	cursor, calls := uint64(0), 0
	for ; calls < pages && (calls == 0 || cursor != 0); calls++ {
		began := time.Now()
		keys, next, err := m.Client.Scan(ctx, cursor, "", pageCount).Result()
		if err != nil {
			return nil, err
		}
		took += max(0, time.Since(began)-e.quick[m.Addr])
		cursor = next
		for _, key := range keys {
			s.seen++
			match := e.Classes.Classify(key)
			s.classes[match.Class] = true
			beside := e.isAuxiliaryKey(key)
			if !beside && (match.Configured || match.Word) {
				s.locks++
				if len(s.lockKeys) < reads {
					s.lockKeys = append(s.lockKeys, key)
				}
			}
			if match.Class != "" || match.Candidate || beside {
				s.read++
				if len(toRead) < reads {
					toRead = append(toRead, key)
				}
			}
		}
	}
	if cursor == 0 { // the sample is everything
		s.keys, s.whole = s.seen, true
	}
	s.keys = max(s.keys, s.seen)
	after := scanStats(ctx, m)
	if called := after.calls - before.calls; before.known && after.known && called > 0 {
		took = time.Duration(float64(calls) * (after.usec - before.usec) / called * float64(time.Microsecond))
	}
	s.perKey = took / time.Duration(max(1, s.seen))
	return s, s.cost(ctx, m, toRead)
}

// isAuxiliaryKey says that a key is one of our library's beside a lock.
func (e *exam) isAuxiliaryKey(key string) bool {
	return slices.ContainsFunc(append([]string{record.DefaultPrefix}, e.Redis.MetaPrefixes...), func(prefix string) bool {
		return strings.HasPrefix(key, prefix)
	})
}

// stats are the server's own count of SCAN.
type stats struct {
	known       bool
	calls, usec float64
}

func scanStats(ctx context.Context, m connect.Master) stats {
	text, err := m.Client.Info(ctx, "commandstats").Result()
	if err != nil {
		return stats{}
	}
	in := parseInfo(text)
	if in["cmdstat_scan"] == "" {
		return stats{known: true}
	}
	return stats{known: true, calls: in.part("cmdstat_scan", "calls"), usec: in.part("cmdstat_scan", "usec")}
}

// cost measures what a look at a key takes: the time of pipelines less that of a
// PING, which is more than the server's time, not less.
func (s *sample) cost(ctx context.Context, m connect.Master, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	var trips time.Duration
	for from := 0; from < len(keys); from += 25 {
		part := keys[from:min(from+25, len(keys))]
		began := time.Now()
		_, err := m.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range part {
				pipe.Type(ctx, key)
				pipe.PTTL(ctx, key)
				pipe.StrLen(ctx, key)
				pipe.GetRange(ctx, key, 0, 63)
			}
			return nil
		})
		if err != nil && !isReply(err) { // of another type, or of no concern of ours
			return err
		}
		trips += time.Since(began)
	}
	s.perRead = trips / time.Duration(len(keys))
	return nil
}

// extrapolate takes a part of the sample for the same part of all keys.
func (s *sample) extrapolate(n int64) int64 {
	if s.seen == 0 {
		return 0
	}
	return int64(math.Round(float64(n) / float64(s.seen) * float64(s.keys)))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// sweep says how long a sweep takes and whether the schedule leaves room for it.
func (e *exam) sweep(f *Forecast, server time.Duration) {
	bounds := e.Scan.Pace.WithDefaults()
	idle, busy := time.Duration(float64(server)/float64(bounds.Idle)), time.Duration(float64(server)/float64(bounds.Busy))
	f.SweepMs, f.SweepBusyMs = ms(idle), ms(busy)
	found := fmt.Sprintf("%s, about %d of them locks by name and %d to be read: %s of server time for a sweep (one pass over all names), which takes %s while nobody else uses the server (%s of it) and up to %s while it is in full use (%s)",
		plural.Count(f.Keys, "key"), f.Locks, f.Read, round(server), round(idle), bounds.Idle, round(busy), bounds.Busy)
	schedule := cmp.Or(e.Scan.Schedule, scanner.DefaultSchedule)
	every, fixed := strings.CutPrefix(schedule, "@every ")
	interval, err := time.ParseDuration(strings.TrimSpace(every))
	if !fixed || err != nil || interval <= 0 {
		e.report.add("sweep", OK, "", found, "")
		return
	}
	share := min(float64(server)/float64(interval), pace.TenMinutes)
	f.ServerShare = &share
	switch {
	case float64(server)/float64(interval) > pace.TenMinutes:
		e.report.add("sweep", Warn, "", found+fmt.Sprintf("; every %s that is more than the %s of a server that sweeps take in ten minutes, so they begin later", round(interval), percent(pace.TenMinutes)),
			"sweep less often: what is not watched is seen that much later either way")
		return
	case idle > interval:
		e.report.add("sweep", Warn, "", found+fmt.Sprintf(", longer than the %s between two", round(interval)),
			"raise pace.idle of the target, or sweep less often: what is not watched is seen that much later")
		return
	}
	e.report.add("sweep", OK, "", found+fmt.Sprintf(", and every %s that is %s of the server", round(interval), percent(share)), "")
}

// growth says by how much the store grows at most: by how fast the sampled locks
// were replaced.
func (e *exam) growth(ctx context.Context, f *Forecast) {
	var watched, gone int
	var seconds float64
	for _, m := range e.masters {
		s := e.samples[m.Addr]
		if len(s.lockKeys) == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain - time.Since(s.at)):
		}
		replies, err := m.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range s.lockKeys {
				pipe.Exists(ctx, key)
			}
			return nil
		})
		if err != nil && !isReply(err) {
			return
		}
		for _, r := range replies {
			if cmd, ok := r.(*redis.IntCmd); ok && cmd.Err() == nil {
				watched++
				gone += int(1 - min(1, cmd.Val()))
			}
		}
		seconds = max(seconds, time.Since(s.at).Seconds())
	}
	if watched == 0 {
		f.StoreAssumption = "no lock was seen"
		e.report.add("store", OK, "", "no lock was seen, so the store grows by audit entries alone (0.6 KiB each)", "")
		return
	}
	// None that ended: as if one were about to.
	rate := max(1, float64(gone)) / float64(watched) / seconds
	ends := min(float64(f.Locks)*rate*24*3600, eventRows)
	bytes := int64(ends * eventRow)
	f.StoreBytesPerDay = &bytes
	f.StoreAssumption = fmt.Sprintf("%d of %d locks ended within %.1fs, which goes on, %d bytes for each end; the latest %d ends of 30 days are kept, and %s of the locks that stand",
		gone, watched, seconds, eventRow, eventRows, size(f.Locks*historyRow))
	e.report.add("store", OK, "", fmt.Sprintf("at most %s a day (%s); audit entries besides, 0.6 KiB each", size(bytes), f.StoreAssumption), "")
}
