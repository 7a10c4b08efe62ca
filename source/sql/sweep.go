package sqlsource

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

// found is how many readings are passed on at once.
const found = 1000

// Sweep implements [source.Source].
func (s *Source) Sweep(ctx context.Context, _ source.SweepOptions, sink source.Sink) (*source.Sweep, error) {
	if err := s.host.Throttle().Pass(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	defer s.rests(began)
	st, err := s.now(ctx, s.db)
	if err != nil {
		return nil, err
	}
	s.host.ClockRead(s.addr, st.at, began, time.Now())
	s.host.Alive()
	plan, err := s.find(ctx, st)
	if err != nil {
		return nil, err
	}
	parts := plan.parts
	s.host.Alive()
	sink.Parts(len(parts))
	out := &source.Sweep{}
	snapshots := make([]snapshot, len(parts))
	for i, p := range parts {
		part := source.Part{
			Node: p.node, Answered: true, Owns: plan.owner(p), Absent: map[string]time.Time{}, NotLock: map[string]time.Time{}, At: st.at, AnsweredAt: time.Now(),
			Server: source.Server{
				State: locksteward.UnknownNode(p.node), Uptime: -1, Evicted: -1, Flushes: -1, Offset: -1, InStep: -1,
			},
		}
		snapshots[i], part.Err = s.read(ctx, s.db, p, st, nil)
		s.host.Alive()
		if errors.Is(context.Cause(ctx), source.ErrStalled) {
			part.Err = source.ErrStalled
		}
		if part.Err == nil {
			part.At, part.AnsweredAt, part.Scanned = snapshots[i].at, time.Now(), int64(len(snapshots[i].holds))
		}
		out.Parts = append(out.Parts, part)
	}
	// After the rows: a holder that took its lock before they were read is connected now, or has gone.
	out.Err = s.lookForHolders(ctx, st, snapshots)
	for i, p := range parts {
		if out.Parts[i].Err == nil {
			s.pass(ctx, sink, i, p, snapshots[i], began, &out.Parts[i])
		}
	}
	out.Duration = time.Since(began)
	return out, nil
}

// rests sets when the next sweep may begin.
func (s *Source) rests(began time.Time) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = now.Add(share * now.Sub(began))
}

// owner returns what reports whether a part has a name. Names of tables that are gone belong to the
// first part; those of tables that may not be read any more to none.
func (l plan) owner(p *part) func(string) bool {
	begins := func(name string) bool { return strings.HasPrefix(name, p.prefix) }
	if p != l.parts[0] {
		return begins
	}
	return func(name string) bool {
		return begins(name) || !slices.ContainsFunc(l.parts, func(o *part) bool { return strings.HasPrefix(name, o.prefix) }) &&
			!slices.ContainsFunc(l.closed, func(o *part) bool { return strings.HasPrefix(name, o.prefix) })
	}
}

// pass passes a snapshot on, and notes which of the known locks are gone.
func (s *Source) pass(ctx context.Context, sink source.Sink, i int, p *part, snap snapshot, began time.Time, part *source.Part) {
	sink.Total(i, int64(len(snap.holds)))
	state := part.Server.State
	sink.Answered(i, &state)
	seen := make(map[string]struct{}, len(snap.holds))
	number := int32(0)
	for holds := range slices.Chunk(snap.holds, found) {
		batch := source.Batch{Node: p.node, Began: began}
		for j := range holds {
			seen[holds[j].obs.Key] = struct{}{}
			r := s.reading(p, &holds[j])
			r.Number = number
			number++
			batch.Readings = append(batch.Readings, r)
		}
		sink.Scanned(len(holds))
		sink.Found(ctx, i, batch)
	}
	s.host.Each(func(k source.Known) {
		if _, ok := seen[k.Name]; !ok && part.Owns(k.Name) {
			part.Absent[k.Name] = snap.at
		}
	})
}

// reading completes what was read of a lock.
func (s *Source) reading(p *part, h *hold) source.Reading {
	target, o := s.host.Target(), h.obs
	match := s.classes.Load().Classify(o.Key)
	o.Target, o.DB, o.Node = target.Name, target.DB, p.node
	o.Class, o.Configured = cmp.Or(match.Class, class.Default), match.Configured
	if addr, ok := s.addrOf(h.holder); ok {
		s.mu.Lock()
		a := s.absent[addr]
		s.mu.Unlock()
		if a.looks > 0 {
			o.Absence = &locksteward.Absence{From: addr, Since: a.since, Looks: a.looks}
		}
	}
	if o.Session != nil {
		session := *o.Session
		session.Thread = thread(target, session.ID)
		o.Session = &session
	}
	waiters := slices.Clone(h.waiters)
	for i := range waiters {
		waiters[i].Target, waiters[i].DB, waiters[i].Class = o.Target, o.DB, o.Class
		waiters[i].Session = thread(target, waiters[i].Session)
	}
	return source.Reading{Name: o.Key, State: source.Held, At: o.At, Lock: &o, Waiters: waiters}
}

// thread names a session of the database among those of all targets.
func thread(t locksteward.Target, session string) string { return t.Name + ": session " + session }

// lookForHolders counts in how many sweeps in a row no session came from the address of a row's holder.
func (s *Source) lookForHolders(ctx context.Context, st state, snapshots []snapshot) error {
	addrs := map[string]bool{}
	for _, snap := range snapshots {
		for i := range snap.holds {
			if addr, ok := s.addrOf(snap.holds[i].holder); ok {
				addrs[addr] = true
			}
		}
	}
	var connected map[string]int
	var err error
	if len(addrs) > 0 && st.sessions {
		ctx, cancel := s.within(ctx)
		defer cancel()
		connected, err = s.dialect.addrs(ctx, s.db)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]absence{}
	for addr := range addrs {
		if connected == nil || err != nil || connected[addr] > 0 {
			continue // it is there, or nobody knows
		}
		a := s.absent[addr]
		if a.looks == 0 {
			a.since = st.at
		}
		a.looks++
		next[addr] = a
	}
	s.absent = next
	return err
}

// Read implements [source.Source].
func (s *Source) Read(ctx context.Context, names []string, paced bool) ([]source.Batch, error) {
	if paced {
		if err := s.host.Throttle().Pass(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	plan, st := s.plan, s.state
	s.mu.Unlock()
	if len(plan.parts) == 0 { // before the first sweep
		var err error
		if st, err = s.now(ctx, s.db); err != nil {
			return nil, err
		}
		if plan, err = s.find(ctx, st); err != nil {
			return nil, err
		}
	}
	var out []source.Batch
	var errs []error
	for _, p := range plan.parts {
		owns := plan.owner(p)
		var mine []string
		for _, name := range names {
			if owns(name) {
				mine = append(mine, name)
			}
		}
		if len(mine) == 0 {
			continue
		}
		b, err := s.readNames(ctx, p, st, mine)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, b)
	}
	err := errors.Join(errs...)
	if err == nil && len(out) == 0 {
		err = errNoPart
	}
	return out, err
}

var errNoPart = errors.New("the table of the lock may not be read any more")

func (s *Source) readNames(ctx context.Context, p *part, st state, names []string) (source.Batch, error) {
	b := source.Batch{Node: p.node, Began: time.Now()}
	snap, err := s.read(ctx, s.db, p, st, names)
	if err != nil {
		return b, err
	}
	byName := make(map[string]*hold, len(names))
	for i := range snap.holds {
		byName[snap.holds[i].obs.Key] = &snap.holds[i]
	}
	for _, name := range names {
		if h := byName[name]; h != nil {
			b.Readings = append(b.Readings, s.reading(p, h))
		} else {
			b.Readings = append(b.Readings, source.Reading{Name: name, State: source.Absent, At: snap.at})
		}
	}
	return b, nil
}
