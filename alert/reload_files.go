package alert

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/locksteward/locksteward/internal/credfile"
)

// reloadingTransport is a transport that is opened again when one of its files changes.
type reloadingTransport struct {
	files *files
	open  func(*files) (transport, error)

	mu       sync.Mutex // guards what follows
	now      transport
	made     uint64 // the generation of the files that now was opened with
	reported uint64 // the generation that renewed has reported
	failed   error  // why it could not be opened with the newest files
}

// stateTaker takes over the state of the transport before it.
type stateTaker interface{ takeState(transport) }

// openReloading opens a transport; its error is that of open.
func openReloading(open func(*files) (transport, error)) (*reloadingTransport, error) {
	r := &reloadingTransport{files: &files{}, open: open}
	var err error
	if r.now, err = open(r.files); err != nil {
		return nil, err
	}
	r.made = r.files.generation()
	r.reported = r.made
	return r, nil
}

// current returns the transport for the files as they are. If they cannot be used, it
// is the one before.
func (r *reloadingTransport) current() transport {
	generation := r.files.generation()
	r.mu.Lock()
	now, made := r.now, r.made
	r.mu.Unlock()
	if generation == made {
		return now
	}
	next, err := r.open(r.files)
	now, replaced := r.replace(generation, next, err)
	if replaced != nil {
		replaced.close()
	}
	return now
}

// replace makes next the transport for a generation of the files. It returns the current
// transport and the one to close, which is next if another call was quicker.
func (r *reloadingTransport) replace(generation uint64, next transport, err error) (now, closing transport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == generation {
		return r.now, next
	}
	r.made, r.failed = generation, err
	if err != nil {
		return r.now, nil
	}
	if t, ok := next.(stateTaker); ok {
		t.takeState(r.now)
	}
	closing, r.now = r.now, next
	return next, closing
}

func (r *reloadingTransport) send(ctx context.Context, out outgoing) error {
	t := r.current()
	defer r.leave(t)
	return t.send(ctx, out)
}

// leave closes the connections of a transport that was replaced meanwhile.
func (r *reloadingTransport) leave(t transport) {
	r.mu.Lock()
	replaced := t != r.now
	r.mu.Unlock()
	if replaced {
		t.close()
	}
}

func (r *reloadingTransport) close() {
	r.mu.Lock()
	now := r.now
	r.mu.Unlock()
	now.close()
}

// states returns the states of the files, read now if force is set.
func (r *reloadingTransport) states(force bool) []credfile.File {
	out := r.files.states(force)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range out {
		if r.failed != nil && out[i].Refused == nil {
			out[i].Refused = fmt.Errorf("the files cannot be used together: %w", r.failed)
		}
	}
	return out
}

// renewed reports, once, that one of the given states is new.
func (r *reloadingTransport) renewed(states []credfile.File) bool {
	generation := generationOf(states)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.reported
	r.reported = generation
	return generation != before
}

// reloadingResender is a reloadingTransport of a resender.
type reloadingResender struct{ *reloadingTransport }

func (r reloadingResender) resendFiring(ctx context.Context, firing []PayloadFinding) error {
	t := r.current()
	defer r.leave(t)
	return t.(resender).resendFiring(ctx, firing)
}

func (r reloadingResender) interval() time.Duration { return r.current().(resender).interval() }

// asResender returns r, as a resender if its transport is one.
func asResender(r *reloadingTransport) transport {
	if _, ok := r.now.(resender); ok {
		return reloadingResender{r}
	}
	return r
}

// CheckFiles opens the files of all receivers and of the heartbeat, as [New] and
// [Heartbeat.Open] do, and reports all problems at once, each with its path. What is
// wrong for another reason is left out: [Config.Validate] says that.
func (c Config) CheckFiles() error {
	c = c.withDefaults()
	var errs []error
	for i, r := range c.Receivers {
		if len(r.kindProblems()) > 0 {
			continue
		}
		out, err := r.opened()
		if err != nil {
			errs = append(errs, prefixed(fmt.Sprintf("receivers[%d].", i), err)...)
			continue
		}
		out.close()
	}
	if c.Heartbeat != nil && len(c.Heartbeat.WithDefaults().problems()) == 0 {
		caller, err := c.Heartbeat.WithDefaults().Open()
		if err != nil {
			errs = append(errs, err)
		} else {
			caller.Close()
		}
	}
	return errors.Join(errs...)
}

// fileBacked is a transport with files.
type fileBacked interface {
	states(force bool) []credfile.File
	renewed(states []credfile.File) bool
}

// Files reads the files of all receivers and returns their states, each under its key in
// the configuration with the receiver's name: "receivers.ops.url_file". When a
// new version of a file is in use, what waits for its receiver is tried at once: the
// file may have been the cause.
func (s *Sender) Files() []credfile.File {
	var out []credfile.File
	for _, w := range s.workers() {
		with, ok := w.dest.Load().out.(fileBacked)
		if !ok {
			continue
		}
		states := with.states(true)
		if with.renewed(states) {
			w.retryNow()
		}
		for _, f := range states {
			f.Key = "receivers." + w.name + "." + f.Key
			out = append(out, f)
		}
	}
	return out
}
