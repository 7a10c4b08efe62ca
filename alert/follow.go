package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward/internal/credfile"
)

// following is a transport that is made anew when one of its files is replaced.
type following struct {
	under string // before the keys of its files
	files *files
	open  func(*files) (transport, error)

	mu     sync.Mutex
	now    transport
	made   uint64 // the state of the files that now was made of
	known  uint64 // the state of which renewed has told
	failed error  // why none could be made of it
}

// heir takes over what the transport before it remembers.
type heir interface{ inherit(transport) }

// follow opens a transport; its error is that of open. under comes before the keys
// of its files.
func follow(under string, open func(*files) (transport, error)) (*following, error) {
	f := &following{under: under, files: &files{}, open: open}
	var err error
	if f.now, err = open(f.files); err != nil {
		return nil, err
	}
	f.made = f.files.generation()
	f.known = f.made
	return f, nil
}

// current is the transport for the files as they are.
func (f *following) current() transport {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.files.generation()
	if is == f.made {
		return f.now
	}
	f.made = is
	next, err := f.open(f.files)
	if f.failed = err; err != nil {
		return f.now
	}
	if h, ok := next.(heir); ok {
		h.inherit(f.now)
	}
	f.now.close()
	f.now = next
	return next
}

func (f *following) send(ctx context.Context, id string, body []byte) error {
	t := f.current()
	defer f.leave(t)
	return t.send(ctx, id, body)
}

// leave closes the connections of a transport that was replaced meanwhile.
func (f *following) leave(t transport) {
	f.mu.Lock()
	was := t != f.now
	f.mu.Unlock()
	if was {
		t.close()
	}
}

func (f *following) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.close()
}

// states looks at the files, at once if force is set.
func (f *following) states(force bool) []credfile.File {
	out := f.files.states(force)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range out {
		out[i].Key = f.under + out[i].Key
		if f.failed != nil && out[i].Refused == nil {
			out[i].Refused = fmt.Errorf("of the files as they are nothing can be made: %w", f.failed)
		}
	}
	return out
}

// renewed says, once, that of the given states one is new.
func (f *following) renewed(states []credfile.File) bool {
	is := generationOf(states)
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.known
	f.known = is
	return is != was
}

// followingReminder is one to a receiver that is told again and again.
type followingReminder struct{ *following }

func (f followingReminder) remind(ctx context.Context, firing []Event) error {
	t := f.current()
	defer f.leave(t)
	return t.(reminder).remind(ctx, firing)
}

func (f followingReminder) every() time.Duration { return f.current().(reminder).every() }

// followed is f, as a reminder if what it follows is one.
func followed(f *following) transport {
	if _, ok := f.now.(reminder); ok {
		return followingReminder{f}
	}
	return f
}

// CheckFiles opens the files of all receivers and of the heartbeat, as [New] and
// [Heartbeat.Open] do, and reports all problems at once, each with its path. What is
// wrong for another reason is left out: [Config.Validate] says that.
func (c Config) CheckFiles() error {
	c = c.withDefaults()
	var errs []error
	for i, r := range c.Receivers {
		kinds := r.kinds()
		if len(kinds) != 1 || len(kinds[0].problems())+len(r.Template.problems()) > 0 {
			continue
		}
		out, _, err := r.opened()
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

// filed is a transport with files.
type filed interface {
	states(force bool) []credfile.File
	renewed(states []credfile.File) bool
}

// Files looks at the files of all receivers and says how each stands, under its key
// in the configuration with the receiver's name: "receivers.ops.webhook.url_file".
// What waits for a receiver of which one was taken into use is tried at once: it may
// be what was wrong.
func (s *Sender) Files() []credfile.File {
	s.mu.Lock()
	workers := slices.Clone(s.workers) // a reload deletes from it
	s.mu.Unlock()
	var out []credfile.File
	for _, w := range workers {
		d := w.dest.Load()
		with, ok := d.out.(filed)
		if !ok {
			continue
		}
		states := with.states(true)
		if with.renewed(states) {
			w.tryNow()
		}
		for _, f := range states {
			f.Key = "receivers." + w.name + "." + f.Key
			out = append(out, f)
		}
	}
	return out
}
