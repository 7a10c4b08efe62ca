package etcdsource

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// batchSize is how many readings are passed on at once.
const batchSize = 500

// Sweep implements [source.Source]. All keys are read as of one revision. A part that
// lacks a prefix is incomplete.
func (s *Source) Sweep(ctx context.Context, _ source.SweepOptions, sink source.Sink) (*source.Sweep, error) {
	began := time.Now()
	prefixes, _ := s.area()
	sink.Parts(1)
	sink.Total(0, -1)
	answered := false
	seen, err := s.reader.scan(ctx, prefixes, s.maxKeys, func(keys int) {
		if !answered {
			answered = true
			sink.Answered(0, nil)
		}
		sink.Scanned(keys)
	})
	if err != nil {
		return nil, err
	}
	groups := group(seen.keys)
	looks := make([]looked, 0, len(groups))
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if kind, _, _ := s.kindOf(groups[name]); kind != "" {
			looks = append(looks, looked{name: name, found: groups[name], at: seen.at})
		}
	}
	leases, err := s.reader.settle(ctx, looks)
	if err != nil {
		return nil, err
	}
	part := source.Part{
		Node: s.node, Answered: true, Err: seen.partial, Scanned: int64(len(seen.keys)), At: seen.at, AnsweredAt: seen.at,
		Owns: func(string) bool { return true }, Absent: map[string]time.Time{}, NotLock: map[string]time.Time{},
		Server: source.Server{State: locksteward.UnknownNode(s.node), Uptime: -1, Evicted: -1, Flushes: -1, Offset: -1, InStep: -1},
	}
	s.pass(ctx, sink, &part, prefixes, looks, leases)
	if seen.partial == nil {
		s.sweptAt(seen.rev)
	}
	return &source.Sweep{Parts: []source.Part{part}, Duration: time.Since(began)}, nil
}

// pass passes what was found to sink, and says in part what is not there any more.
func (s *Source) pass(ctx context.Context, sink source.Sink, part *source.Part, prefixes []string, looks []looked, leases map[int64]lease) {
	b := source.Batch{Node: s.node, Began: time.Now()}
	flush := func() {
		if len(b.Readings) > 0 {
			sink.Found(ctx, 0, b)
			b.Readings = nil
		}
	}
	held := map[string]struct{}{}
	waiters := map[queued]struct{}{}
	var number int32
	for _, l := range looks {
		r := s.readingOf(l, leases)
		switch {
		case r.State == source.Held:
			held[l.name] = struct{}{}
			for _, e := range l.found.keys[1:] {
				waiters[queued{e.key, e.create}] = struct{}{}
			}
			r.Number = number
			number++
			if b.Readings = append(b.Readings, r); len(b.Readings) == batchSize {
				flush()
			}
		case r.State == source.NotLock && r.Lock != nil:
			part.Candidates++
			part.CandidateNames = append(part.CandidateNames, l.name)
			part.NotLock[l.name] = l.at
		case r.State == source.NotLock:
			part.NotLock[l.name] = l.at
		case r.State == source.Unread:
			held[l.name] = struct{}{} // there is something; what, the next sweep says
		}
	}
	flush()
	s.host.Each(func(k source.Known) {
		_, here := held[k.Name]
		_, other := part.NotLock[k.Name]
		switch {
		case here || other:
		case covers(prefixes, k.Name):
			part.Absent[k.Name] = part.At
		default:
			part.NotLock[k.Name] = part.At // no class is about it any more
		}
	})
	if part.Err == nil {
		s.forgetWaiters(waiters, part.At)
	}
}

// covers says whether the locks of a name are among what begins with prefixes.
func covers(prefixes []string, name string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) || strings.HasPrefix(name+"/", p) })
}
