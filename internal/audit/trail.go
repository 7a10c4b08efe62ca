package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/store"
)

const (
	// signLook is how often it is looked whether the head is to be signed.
	signLook = 10 * time.Second
	// drainFor is how long Stop waits for sinks.
	drainFor = 5 * time.Second
)

// Options are what a [Trail] needs besides its configuration.
type Options struct {
	// Key signs checkpoints; nil signs nothing, and Unsigned says why.
	Key      *Key
	Unsigned string
	// Stdout is where a sink of that kind writes; nil: nowhere.
	Stdout io.Writer
}

// Trail is what an agent does with its audit trail. Make one with [New].
type Trail struct {
	log   *zap.Logger
	cfg   Config
	opts  Options
	store *store.Store
	sinks []*sink

	// verifying holds one verification at a time: each reads all of the trail.
	verifying sync.Mutex
	// signing keeps checkpoints in order.
	signing sync.Mutex
	last    store.SignedCheckpoint // of this key; zero before it was read

	cancel context.CancelFunc
	done   sync.WaitGroup // who signs
}

// New prepares a trail without starting anything.
func New(log *zap.Logger, cfg Config, st *store.Store, o Options) (*Trail, error) {
	t := &Trail{log: log.Named("audit"), cfg: cfg, opts: o, store: st}
	var stdout receiver
	if o.Stdout != nil {
		stdout = &streamReceiver{o.Stdout}
	}
	for _, c := range cfg.Sinks {
		to, kind, err := newReceiver(c, stdout)
		if err != nil {
			return nil, fmt.Errorf("audit.sinks: %q: %w", c.Name, err)
		}
		t.sinks = append(t.sinks, &sink{log: t.log.With(zap.String("sink", c.Name)), name: c.Name, kind: kind, to: to, store: st, again: make(chan struct{}, 1)})
	}
	if cfg.AnchorFile != "" {
		t.sinks = append(t.sinks, &sink{
			log: t.log.With(zap.String("sink", anchorName)), name: anchorName, kind: "anchor", to: &fileReceiver{path: cfg.AnchorFile}, store: st, anchor: true,
		})
	}
	return t, nil
}

// Start signs and delivers until Stop; the end of ctx alone does not end it, since
// the last entries come after it. It may come again after Stop.
func (t *Trail) Start(ctx context.Context) {
	if t.opts.Key == nil {
		t.log.Warn("checkpoints of the audit trail are not signed", zap.String("reason", t.opts.Unsigned))
	}
	t.signing.Lock()
	t.last = store.SignedCheckpoint{} // another process may have signed since
	t.signing.Unlock()
	ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.done.Go(func() { t.sign(ctx) })
	for _, s := range t.sinks {
		s.anew()
		s.running.Go(func() { s.run(ctx) })
	}
}

// Stop signs the head, gives sinks the rest and ends all.
func (t *Trail) Stop(ctx context.Context) {
	if t.cancel == nil {
		return
	}
	t.cancel()
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.done.Wait()
		if err := t.Checkpoint(bound); err != nil {
			t.log.Error("the end of the audit trail is not signed", zap.Error(err))
		}
		var all sync.WaitGroup
		for _, s := range t.sinks {
			all.Go(func() {
				s.running.Wait() // one that hangs keeps no other from its rest
				s.drain(bound)
				_ = s.to.close()
			})
		}
		all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(drainFor + time.Second):
		t.log.Error("an audit sink does not end: it is left alone")
	}
}

// Reopen has sinks open their files and connections anew.
func (t *Trail) Reopen() {
	for _, s := range t.sinks {
		s.to.reopen()
	}
}

// Files looks at the files of all sinks and says how each stands, under its key in
// the configuration with the sink's name: "sinks.siem.webhook.url_file". A sink of
// which one was taken into use is tried at once: it may be what was wrong.
func (t *Trail) Files() []credfile.File {
	var out []credfile.File
	for _, s := range t.sinks {
		hook, ok := s.to.(*webhookReceiver)
		if !ok {
			continue
		}
		list, renewed := hook.caller.Files()
		if renewed {
			select {
			case s.again <- struct{}{}:
			default:
			}
		}
		for _, f := range list {
			f.Key = "sinks." + s.name + ".webhook." + f.Key
			out = append(out, f)
		}
	}
	return out
}

// sign signs the head when it is time, until ctx ends.
func (t *Trail) sign(ctx context.Context) {
	tick := time.NewTicker(signLook)
	defer tick.Stop()
	failed := false
	for {
		err := t.due(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failed:
			t.log.Error("no checkpoint of the audit trail is made: it is tried again", zap.Error(err))
		case err == nil && failed:
			t.log.Info("checkpoints of the audit trail are made again")
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// due signs the head if enough came since the last time.
func (t *Trail) due(ctx context.Context) error {
	t.signing.Lock()
	defer t.signing.Unlock()
	last, err := t.lastOne(ctx)
	if err != nil {
		return err
	}
	_, head, err := t.store.Ends(ctx)
	if err != nil {
		return err
	}
	fresh := head.Seq - last.Seq
	if fresh <= 0 || fresh < int64(t.cfg.CheckpointEntries) && time.Since(last.At) < t.cfg.CheckpointEvery {
		return nil
	}
	return t.keep(ctx, head)
}

// Checkpoint signs the head now, unless it is signed already.
func (t *Trail) Checkpoint(ctx context.Context) error {
	t.signing.Lock()
	defer t.signing.Unlock()
	last, err := t.lastOne(ctx)
	if err != nil {
		return err
	}
	_, head, err := t.store.Ends(ctx)
	if err != nil || head.Seq <= last.Seq {
		return err
	}
	return t.keep(ctx, head)
}

// Pruned signs the place behind which the trail begins now, and forgets the
// checkpoints before it.
func (t *Trail) Pruned(ctx context.Context) error {
	t.signing.Lock()
	defer t.signing.Unlock()
	base, _, err := t.store.Ends(ctx)
	if err != nil || base.Seq == 0 {
		return err
	}
	list, err := t.store.Checkpoints(ctx, store.CheckpointQuery{After: base.Seq - 1, Before: base.Seq + 1})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		if err := t.store.SaveCheckpoint(ctx, Sign(t.opts.Key, base, time.Now())); err != nil {
			return err
		}
	}
	_, err = t.store.PruneCheckpoints(ctx)
	return err
}

// lastOne is the last checkpoint. The caller holds t.signing.
func (t *Trail) lastOne(ctx context.Context) (store.SignedCheckpoint, error) {
	if t.last.Seq > 0 {
		return t.last, nil
	}
	list, err := t.store.Checkpoints(ctx, store.CheckpointQuery{Limit: 1})
	if err == nil && len(list) == 1 {
		t.last = list[0]
	}
	return t.last, err
}

// keep signs a place. The caller holds t.signing.
func (t *Trail) keep(ctx context.Context, place store.Checkpoint) error {
	c := Sign(t.opts.Key, place, time.Now())
	if err := t.store.SaveCheckpoint(ctx, c); err != nil {
		return err
	}
	t.last = c
	return nil
}

// keys are those whose signatures count here.
func (t *Trail) keys() Keyring {
	if t.opts.Key == nil {
		return nil
	}
	return NewKeyring(t.opts.Key.Public())
}

// Verify reads all of the trail.
func (t *Trail) Verify(ctx context.Context) (api.AuditVerified, error) {
	if !t.verifying.TryLock() {
		return api.AuditVerified{}, fmt.Errorf("%w: the trail is being verified already: ask again in a while", locksteward.ErrConflict)
	}
	defer t.verifying.Unlock()
	return CheckStore(ctx, t.store, StoreOptions{Keys: t.keys()})
}

// Status is how the trail stands.
func (t *Trail) Status(ctx context.Context) (api.AuditStatus, error) {
	base, head, err := t.store.Ends(ctx)
	if err != nil {
		return api.AuditStatus{}, err
	}
	out := api.AuditStatus{
		Entries: head.Seq - base.Seq, Base: place(base), Head: place(head), Unsigned: t.opts.Unsigned, Sinks: []api.AuditSink{},
	}
	if t.opts.Key != nil {
		out.KeyID, out.PublicKey = t.opts.Key.Public().ID(), t.opts.Key.Public().PEM()
	}
	list, err := t.store.Checkpoints(ctx, store.CheckpointQuery{Limit: 1})
	if err != nil {
		return api.AuditStatus{}, err
	}
	if len(list) == 1 {
		out.Checkpoint = new(View(list[0]))
	}
	for _, s := range t.sinks {
		out.Sinks = append(out.Sinks, s.view())
	}
	return out, nil
}

func place(c store.Checkpoint) api.Place { return api.Place{Seq: c.Seq, Hash: c.Hash} }

// Import takes lines of a file of `locksteward unlock` into the trail, in the name
// of who.
func (t *Trail) Import(ctx context.Context, who string, in api.AuditImport) (api.AuditImported, error) {
	now := time.Now()
	lines, err := ParseImport(in, who, now)
	if err != nil {
		return api.AuditImported{}, err
	}
	n, err := t.store.ImportEntries(ctx, lines, func(fresh int) locksteward.Entry {
		return importEntry(in, who, now, fresh, len(lines)-fresh)
	})
	return api.AuditImported{Imported: n, Known: len(lines) - n}, err
}

// StoreOptions say against what a store is verified.
type StoreOptions struct {
	// Keys are those whose signatures are checked.
	Keys Keyring
	// Anchors are places that were written down elsewhere.
	Anchors  []store.Checkpoint
	Progress func(done, all int64)
}

// CheckStore verifies a store: the chain, its own checkpoints and their signatures,
// and the anchors. A broken trail is an answer; an error means that it is not known.
func CheckStore(ctx context.Context, st *store.Store, o StoreOptions) (api.AuditVerified, error) {
	began := time.Now()
	own, err := st.AllCheckpoints(ctx)
	if err != nil {
		return api.AuditVerified{}, err
	}
	anchors := append([]store.Checkpoint{}, o.Anchors...)
	for _, c := range own {
		anchors = append(anchors, c.Checkpoint)
	}
	v, err := st.VerifyWith(ctx, store.VerifyOptions{Anchors: anchors, Progress: o.Progress})
	out := api.AuditVerified{Whole: err == nil, Entries: v.Entries, Base: place(v.Base), Head: place(v.Head)}
	if broken, ok := errors.AsType[*store.ChainError](err); ok {
		out.BrokenAt, out.Problem = broken.Seq, broken.Problem
	} else if err != nil {
		return api.AuditVerified{}, err
	}
	for _, c := range own {
		if c.Seq < v.Base.Seq {
			continue
		}
		out.Checkpoints++
		good, err := o.Keys.Check(c)
		if good {
			out.Signed++
		}
		if forged, ok := errors.AsType[*SignatureError](err); ok && out.Whole {
			out.Whole, out.BrokenAt, out.Problem = false, forged.Seq, forged.Problem
		}
	}
	out.DurationMs = time.Since(began).Milliseconds()
	return out, nil
}
