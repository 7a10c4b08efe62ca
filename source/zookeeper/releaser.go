package zksource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// resolvePause is between two attempts to find out what a release did.
const resolvePause = 100 * time.Millisecond

// ReleaserOptions are the options of [OpenReleaser].
type ReleaserOptions struct {
	// Digest is the installation's key: evidence is compared by its digests.
	Digest locksteward.DigestKey
	// Timeout is how long a request may take; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Records is the directory of the records; "" is [DefaultRecords].
	Records string
}

// Releaser deletes the node of a hold: in one transaction that also makes the record of its
// request, so that a request runs once and what it did is known. It has a session only while
// a method runs. It is safe for concurrent use.
type Releaser struct {
	login source.Login
	opts  ReleaserOptions

	mu     sync.Mutex // guards what follows
	pruned time.Time
}

var _ source.Releaser = (*Releaser)(nil)

// OpenReleaser returns a releaser that logs in by login, or what is wrong with its settings. It
// does no I/O.
func OpenReleaser(login source.Login, opts ReleaserOptions) (*Releaser, error) {
	opts.Timeout, opts.Records = cmp.Or(opts.Timeout, DefaultTimeout), cmp.Or(opts.Records, DefaultRecords)
	if _, err := newClient(login, opts.Timeout, nil); err != nil {
		return nil, err
	}
	return &Releaser{login: login, opts: opts}, nil
}

// Limits returns what cannot be done with a hold.
func (*Releaser) Limits(hold locksteward.Evidence) source.Limits {
	l := source.Limits{
		Placeholder: "ZooKeeper has no place before those who wait already",
		Undo:        "a node that was deleted cannot be put back: a new one belongs to another session, and stands behind all who wait",
	}
	name := locksteward.DisplayKey(hold.Key)
	switch {
	case hold.TokenDigest == "":
		l.Release = fmt.Errorf("%w: the node that holds %q is not known", locksteward.ErrRefused, name)
	case hold.Library == libraryUnknown:
		l.Release = fmt.Errorf("%w: nobody knows which library made the nodes at %q, so that nobody can say which of them holds the lock; see docs/stores/zookeeper.md for the way by hand", locksteward.ErrRefused, name)
	case hold.Identity != locksteward.IdentityStrong:
		l.Decision = "the name of its node is used again, and ZooKeeper compares no more than a version that starts from 0 each time: " +
			"if the hold ends and is taken again within the milliseconds between the last look and the deletion, the next hold is deleted"
	}
	return l
}

// with begins a session for fn alone.
func (r *Releaser) with(fn func(c *client) error) error {
	c, err := newClient(r.login, r.opts.Timeout, nil)
	if err != nil {
		return err
	}
	defer c.close()
	return fn(c)
}

// read returns the hold of a lock as our server knows it; nil if there is none.
func (r *Releaser) read(ctx context.Context, c *client, name string) (*hold, error) {
	dir := directoryOf(name)
	rd := reader{client: c}
	holds, err := rd.directory(ctx, dir)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(holds, func(h hold) bool { return h.name == name }); i >= 0 {
		return &holds[i], nil
	}
	return nil, nil //nolint:nilnil // There is none.
}

// sync has our server catch up with the leader.
func (r *Releaser) sync(ctx context.Context, c *client, path string) error {
	full := c.path(path)
	_, err := call(ctx, c, func(conn *zk.Conn) (string, error) { return conn.Sync(full) })
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrInvalidPath) {
		return nil
	}
	return err
}

// Preview implements [source.Releaser].
func (r *Releaser) Preview(ctx context.Context, req locksteward.Request) (p source.Preview, err error) {
	err = r.with(func(c *client) error {
		h, err := r.read(ctx, c, req.Evidence.Key)
		if err != nil || h == nil {
			return err
		}
		now := h.evidence(r.opts.Digest)
		record := c.path(r.record(req.ID))
		p = source.Preview{
			Found: true, Now: now, Differences: source.Differences(req.Evidence, now), Refusal: r.Limits(now).Release,
			Keys:   []string{c.path(h.path), record},
			Script: fmt.Sprintf("multi { create %s %s; delete %s version %d }", locksteward.DisplayKey(record), recordReleased, locksteward.DisplayKey(c.path(h.path)), h.stat.Version),
		}
		return nil
	})
	if err != nil {
		return source.Preview{}, r.explained("preview release", err)
	}
	return p, nil
}

// explained is an error in words for people.
func (r *Releaser) explained(verb string, err error) error {
	return fmt.Errorf("%s: %s", verb, r.explain(err))
}

func (r *Releaser) explain(err error) string {
	s, _ := parseURL(r.login.URL) // it was valid
	s.user = cmp.Or(r.login.Username, s.user)
	if right, ok := errors.AsType[*rightError](err); ok {
		return right.Error()
	}
	return explain(err, s)
}

// rightError is a right that the releaser lacks.
type rightError struct{ right, path string }

func (e *rightError) Error() string {
	return fmt.Sprintf("the releaser lacks %s on %s; see `locksteward acl`", e.right, locksteward.DisplayKey(e.path))
}

// Release implements [source.Releaser].
func (r *Releaser) Release(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	var outcome source.Outcome
	sent := false
	err := r.with(func(c *client) (err error) {
		outcome, sent, err = r.act(ctx, c, req)
		return err
	})
	switch {
	case err == nil:
		return outcome, nil
	case !sent:
		return source.Failed(r.explain(err)), nil
	}
	// From here on only the record knows.
	cause := err
	for {
		outcome, err := r.resolve(ctx, req)
		if err == nil {
			if outcome.State == locksteward.RequestFailed {
				outcome.Reason = r.explain(cause)
			}
			return outcome, nil
		}
		if source.Sleep(ctx, resolvePause) != nil {
			return source.Outcome{}, fmt.Errorf("execute release: %s; then: %s", r.explain(cause), r.explain(err))
		}
	}
}

// act compares and deletes. sent says that the transaction may have reached a server, and that
// an error says nothing of what it did.
func (r *Releaser) act(ctx context.Context, c *client, req locksteward.Request) (outcome source.Outcome, sent bool, err error) {
	e := req.Evidence
	if e.Act != locksteward.ActRelease || e.Placeholder > 0 || e.Undo > 0 {
		l := r.Limits(e)
		return source.Failed(l.Placeholder + "; " + l.Undo), false, nil
	}
	if err := r.sync(ctx, c, e.Key); err != nil {
		return source.Outcome{}, false, err
	}
	for range attempts {
		h, err := r.read(ctx, c, e.Key)
		if err != nil {
			return source.Outcome{}, false, err
		}
		outcome := source.Outcome{State: locksteward.RequestAlreadyGone}
		var now locksteward.Evidence
		if h != nil {
			now = h.evidence(r.opts.Digest)
			outcome = source.Outcome{State: locksteward.RequestChanged, Differences: source.Differences(e, now)}
		}
		if h == nil || len(outcome.Differences) > 0 {
			if earlier, found, err := r.recorded(ctx, c, req); err != nil || found {
				return earlier, false, err // that it ran before is why
			}
			return outcome, false, nil
		}
		if why := r.Limits(now).Release; why != nil {
			return source.Failed(why.Error()), false, nil
		}
		err = r.delete(ctx, c, req.ID, h)
		switch {
		case err == nil:
			r.prune(ctx, c)
			return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByAnswer}, true, nil
		case errors.Is(err, errNoRecords):
			if err := r.records(ctx, c); err != nil {
				return source.Outcome{}, false, err
			}
		case errors.Is(err, errRecorded):
			outcome, _, err := r.recorded(ctx, c, req)
			return outcome, true, err
		case !errors.Is(err, errMoved):
			_, certain := errors.AsType[*rightError](err)
			return source.Outcome{}, !certain, err
		}
	}
	return source.Failed("the lock changes faster than it can be compared; nothing was deleted"), false, nil
}

// What a transaction found that did nothing.
var (
	errRecorded  = errors.New("the request has a record")
	errNoRecords = errors.New("there is no directory for records")
	errMoved     = errors.New("the node changed since it was read")
)

// delete deletes the node of a hold and makes the record of the request, or does nothing.
func (r *Releaser) delete(ctx context.Context, c *client, id string, h *hold) error {
	record, path := c.path(r.record(id)), c.path(h.path)
	results, err := call(ctx, c, func(conn *zk.Conn) ([]zk.MultiResponse, error) {
		return conn.Multi(
			&zk.CreateRequest{Path: record, Data: []byte(recordReleased), Acl: r.acl(c)},
			&zk.DeleteRequest{Path: path, Version: h.stat.Version},
		)
	})
	// A transaction that did nothing names what its first obstacle was.
	if i := slices.IndexFunc(results, func(m zk.MultiResponse) bool { return m.Error != nil }); i >= 0 {
		err = results[i].Error
		dir, _ := splitPath(h.path)
		switch {
		case errors.Is(err, zk.ErrNoAuth) && i == 0:
			return &rightError{"CREATE", r.opts.Records}
		case errors.Is(err, zk.ErrNoAuth):
			return &rightError{"DELETE", dir}
		case errors.Is(err, zk.ErrNodeExists) && i == 0:
			return errRecorded
		case errors.Is(err, zk.ErrNoNode) && i == 0:
			return errNoRecords
		case errors.Is(err, zk.ErrNoNode) && i == 1, errors.Is(err, zk.ErrBadVersion) && i == 1:
			return errMoved
		}
	}
	return err
}
