package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

const (
	// anchorName is the name under which the place of the anchor file is kept.
	anchorName = "anchor"
	// sinkBatch is how many entries are written before the place is saved.
	sinkBatch = 500
	// sinkEvery is how soon an entry is seen.
	sinkEvery = 250 * time.Millisecond
	// sinkBackoff is how long a sink that fails is left alone at most.
	sinkBackoff = 30 * time.Second
	// tellBehindEvery is how often the log says that a sink still gets nothing.
	tellBehindEvery = 10 * time.Minute
)

// record is one line for a sink: an entry or a checkpoint.
type record struct {
	at   time.Time
	line []byte // with its newline
	// short is the line of an entry whose own is too long for what it is sent in.
	short func() []byte
}

// receiver is where a sink's lines go.
type receiver interface {
	// write delivers all records in their order. After an error all of them are
	// written again: some may come twice.
	write(ctx context.Context, records []record) error
	// reopen lets go of what was opened: what comes is written anew.
	reopen()
	close() error
}

// sink takes the trail to one receiver.
type sink struct {
	log   *zap.Logger
	name  string
	kind  string
	to    receiver
	store *store.Store
	// lines alone: no entries.
	anchor bool

	running sync.WaitGroup
	again   chan struct{} // of size 1: it is to be tried now

	mu      sync.Mutex
	place   store.SinkPlace
	known   bool // place was read
	head    int64
	problem error
	since   time.Time
	logged  time.Time
}

// run delivers until ctx ends.
func (s *sink) run(ctx context.Context) {
	wait := sinkEvery
	for {
		more, err := s.step(ctx)
		if ctx.Err() != nil {
			return
		}
		s.note(err)
		switch {
		case err != nil:
			wait = min(max(2*wait, time.Second), sinkBackoff)
		case more:
			wait = 0
		default:
			wait = sinkEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-s.again:
		case <-time.After(wait):
		}
	}
}

// anew forgets where the sink was: another process may have gone on since.
func (s *sink) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
}

// drain delivers what there is, until ctx ends.
func (s *sink) drain(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		var err error
		if more, err = s.step(ctx); err != nil {
			s.note(err)
			return
		}
		s.note(nil)
	}
	if behind := s.view().Behind; behind > 0 {
		s.log.Warn("an audit sink lacks entries: it gets them after the next start", zap.Int64("entries", behind))
	}
}

// step delivers one batch, and says whether there may be more.
func (s *sink) step(ctx context.Context) (more bool, err error) {
	place, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	entries, err := s.entries(ctx, &place)
	if err != nil {
		return false, err
	}
	checkpoints, err := s.checkpoints(ctx, &place)
	return entries || checkpoints, err
}

// begin finds out where the sink is, and what there is.
func (s *sink) begin(ctx context.Context) (store.SinkPlace, error) {
	base, head, err := s.store.Ends(ctx)
	if err != nil {
		return store.SinkPlace{}, err
	}
	s.mu.Lock()
	place, known := s.place, s.known
	s.head = head.Seq
	s.mu.Unlock()
	if !known {
		if place, err = s.store.SinkPlace(ctx, s.name); err != nil {
			return place, err
		}
		if place == (store.SinkPlace{}) {
			place.Seq = base.Seq // what went before it was there is not missed
		}
	}
	if missed := base.Seq - place.Seq; missed > 0 && !s.anchor {
		s.log.Error("retention took entries before an audit sink got them", zap.Int64("entries", missed), zap.Int64("through", base.Seq))
		place.Seq, place.Missed = base.Seq, place.Missed+missed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place, s.known = place, true
	return place, nil
}

func (s *sink) entries(ctx context.Context, place *store.SinkPlace) (more bool, err error) {
	if s.anchor {
		return false, nil
	}
	entries, err := s.store.Entries(ctx, store.EntryQuery{After: place.Seq, Ascending: true, Limit: sinkBatch})
	if err != nil || len(entries) == 0 {
		return false, err
	}
	records := make([]record, 0, len(entries))
	for _, e := range entries {
		line, err := entryLine(e)
		if err != nil {
			return false, err
		}
		records = append(records, record{at: e.At, line: line, short: func() []byte { return shortLine(e) }})
	}
	if err := s.to.write(ctx, records); err != nil {
		return false, err
	}
	place.Seq = entries[len(entries)-1].Seq
	return len(entries) == sinkBatch, s.save(ctx, *place)
}

// shortLine is an entry without what makes it long. Its hash is that of all of it.
func shortLine(e locksteward.Entry) []byte {
	out := api.NewEntry(e)
	out.Detail, out.DetailB64 = nil, ""
	const most = 4 << 10
	for _, text := range []*string{&out.Actor, &out.Target, &out.Key.Key, &out.Subject, &out.Reason} {
		if len(*text) > most {
			*text = (*text)[:most]
		}
	}
	if len(out.KeyB64) > most {
		out.KeyB64 = ""
	}
	line, _ := asLine(out) // strings cannot fail
	return line
}

func (s *sink) checkpoints(ctx context.Context, place *store.SinkPlace) (more bool, err error) {
	q := store.CheckpointQuery{After: place.Checkpoint, Ascending: true, Limit: sinkBatch}
	if !s.anchor {
		q.Before = place.Seq + 1
	}
	list, err := s.store.Checkpoints(ctx, q)
	if err != nil || len(list) == 0 {
		return false, err
	}
	records := make([]record, 0, len(list))
	for _, c := range list {
		line := []byte(Line(c) + "\n")
		if !s.anchor {
			if line, err = asLine(checkpointLine{Line(c)}); err != nil {
				return false, err
			}
		}
		records = append(records, record{at: c.At, line: line})
	}
	if err := s.to.write(ctx, records); err != nil {
		return false, err
	}
	place.Checkpoint = list[len(list)-1].Seq
	return len(list) == sinkBatch, s.save(ctx, *place)
}

// save keeps the place; without that the same is delivered again after a restart.
func (s *sink) save(ctx context.Context, place store.SinkPlace) error {
	s.mu.Lock()
	s.place = place
	s.mu.Unlock()
	if err := s.store.SaveSinkPlace(context.WithoutCancel(ctx), s.name, place); err != nil {
		return fmt.Errorf("what was delivered is delivered again after a restart: %w", err)
	}
	return nil
}

// note keeps what is wrong with the sink, and logs when that changes.
func (s *sink) note(err error) {
	s.mu.Lock()
	was, now, behind := s.problem, time.Now(), max(0, s.head-s.place.Seq)
	s.problem = err
	tell := false
	switch {
	case err == nil:
		s.since = time.Time{}
	case was == nil:
		s.since, s.logged, tell = now, now, true
	case now.Sub(s.logged) >= tellBehindEvery:
		s.logged, tell = now, true
	}
	s.mu.Unlock()
	switch {
	case tell:
		s.log.Warn("an audit sink gets nothing: it is tried again", zap.Int64("behind", behind), zap.Error(err))
	case err == nil && was != nil:
		s.log.Info("an audit sink gets entries again", zap.Int64("behind", behind))
	}
}

// view is what the API shows of the sink.
func (s *sink) view() api.AuditSink {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := api.AuditSink{Name: s.name, Kind: s.kind, Seq: s.place.Seq, Behind: max(0, s.head-s.place.Seq), Missed: s.place.Missed, Since: s.since.UTC()}
	if s.anchor {
		out.Seq, out.Behind, out.Missed = s.place.Checkpoint, 0, 0
	}
	if s.problem != nil {
		out.Problem = s.problem.Error()
	}
	return out
}

// newReceiver opens nothing yet.
func newReceiver(c SinkConfig, stdout receiver) (receiver, string, error) {
	switch {
	case c.Stdout && stdout == nil:
		return nil, "", errors.New("this agent has no standard output")
	case c.Stdout:
		return stdout, "stdout", nil
	case c.File != "":
		return &fileReceiver{path: c.File}, "file", nil
	case c.Webhook != nil:
		to, err := newWebhook(*c.Webhook)
		return to, "webhook", err
	default:
		address, err := parseSyslog(c.Syslog)
		return newSyslog(address), "syslog", err
	}
}
