package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// directReader reads for a person or a rule: at once, without waiting for the
// budget, in which it is booked all the same.
func (s *Source) directReader(m connect.Master) *reader {
	return &reader{
		client: m.Client, node: m.Addr, clockRead: s.host.ClockRead, caps: s.caps, prefixes: s.prefixes,
		call: func(_ context.Context, _ int, pipeline func() error) error {
			began := time.Now()
			err := pipeline()
			s.book(m.Addr, time.Since(began))
			return err
		},
	}
}

// pacedReader reads as a sweep does: when the pace of the server allows.
func (s *Source) pacedReader(m connect.Master) *reader {
	server := s.server(m.Addr)
	r := s.directReader(m)
	r.call = func(ctx context.Context, n int, pipeline func() error) error {
		return s.paced(ctx, server, func() error {
			began := time.Now()
			err := pipeline()
			now := time.Now()
			server.Piped(now, n, now.Sub(began))
			return err
		})
	}
	return r
}

// Read implements [source.Source].
func (s *Source) Read(ctx context.Context, names []string, paced bool) ([]source.Batch, error) {
	readerAt := s.directReader
	if paced {
		readerAt = s.pacedReader
	}
	if len(names) == 1 {
		m, err := s.conn.MasterFor(ctx, names[0])
		if err != nil {
			return nil, err
		}
		batch, err := s.readBatch(ctx, readerAt(m), names)
		return []source.Batch{batch}, err
	}
	masters, err := s.conn.Masters(ctx)
	if err != nil {
		return nil, err
	}
	var (
		out  []source.Batch
		errs []error
	)
	for _, m := range masters {
		var keys []string
		for _, name := range names {
			if m.Owns(name) {
				keys = append(keys, name)
			}
		}
		r := readerAt(m)
		for chunk := range slices.Chunk(keys, subjectsPerLook) {
			batch, err := s.readBatch(ctx, r, chunk)
			if err != nil {
				errs = append(errs, fmt.Errorf("read locks of %s: %w", m.Addr, err))
				break
			}
			out = append(out, batch)
		}
	}
	return out, errors.Join(errs...)
}

func (s *Source) readBatch(ctx context.Context, r *reader, keys []string) (source.Batch, error) {
	batch := source.Batch{Node: r.node, Began: time.Now()}
	readings, err := s.readKeys(ctx, r, keys)
	for i := range readings {
		batch.Readings = append(batch.Readings, readings[i].reading())
	}
	return batch, err
}

// readKeys reads keys of one master, with waiters and heartbeats.
func (s *Source) readKeys(ctx context.Context, r *reader, keys []string) ([]keyReading, error) {
	classes := s.classes.Load()
	subjects := make([]subject, len(keys))
	for i, key := range keys {
		subjects[i] = subject{key: key, match: classes.Classify(key), memory: s.remember(key)}
	}
	readings, err := r.inspect(ctx, subjects)
	if err != nil {
		return nil, err
	}
	o := observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}}
	for i := range readings {
		if o.complete(&readings[i], r.node); readings[i].lock != nil {
			s.joinDirect(ctx, r, &readings[i])
		}
	}
	return readings, nil
}

// joinDirect reads the waiters of a lock and the heartbeat of its holder. What cannot be
// read stays unknown; the lock is shown all the same.
func (s *Source) joinDirect(ctx context.Context, r *reader, seen *keyReading) {
	l := seen.lock
	if seen.id() != "" {
		waiting := s.waitersAt(ctx, r, seen)
		s.complete(waiting)
		l.Waiters, seen.waiters = waiting[l.Key].Count, waiting[l.Key].Waiters
	}
	id := l.Holder.Instance
	if id == "" {
		return
	}
	for _, key := range s.instanceKeys(id) {
		got := instanceRead{}
		if m, err := s.conn.MasterFor(ctx, key.key); err == nil {
			if list, err := s.directReader(m).instances(ctx, []instanceKey{key}); err == nil {
				got = list[0]
			}
		}
		switch {
		case got.instance != nil:
			l.Instance = got.instance
			return
		case !got.read:
			l.Instance = &locksteward.Instance{ID: id}
		}
	}
}

// instanceKeys returns where the heartbeat of a process may stand.
func (s *Source) instanceKeys(id string) []instanceKey {
	keys := make([]instanceKey, len(s.prefixes))
	for i, prefix := range s.prefixes {
		keys[i] = instanceKey{id: id, key: record.InstanceKey(prefix, id)}
	}
	return keys
}
