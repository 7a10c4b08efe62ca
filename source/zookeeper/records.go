package zksource

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

const (
	// DefaultRecords is the directory where releases leave their records.
	DefaultRecords = "/locksteward-releases"
	// keepRecords is how long a record is kept: longer than any request is resolved.
	keepRecords = 7 * 24 * time.Hour
	// pruneEvery is how often old records are looked for, pruneAtOnce how many are removed.
	pruneEvery  = time.Hour
	pruneAtOnce = 1000
)

// What records say.
const (
	recordReleased  = "released"
	recordWithdrawn = "withdrawn"
)

// record is the path of the record of a request. Its name ends in no number: it is no member of
// a queue.
func (r *Releaser) record(id string) string { return join(r.opts.Records, id+".release") }

// acl is that of records: who made them alone may read them.
func (r *Releaser) acl(c *client) []zk.ACL {
	if c.spec.user == "" {
		return zk.WorldACL(zk.PermAll)
	}
	return zk.AuthACL(zk.PermAll)
}

// records makes the directory of the records, unless it is there.
func (r *Releaser) records(ctx context.Context, c *client) error {
	full := c.path(r.opts.Records)
	_, err := call(ctx, c, func(conn *zk.Conn) (string, error) {
		if there, _, err := conn.Exists(full); err != nil || there {
			return "", err
		}
		return conn.Create(full, nil, zk.FlagPersistent, r.acl(c))
	})
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoAuth):
		return &rightError{"CREATE", "the directory above " + r.opts.Records}
	}
	return err
}

// recorded reads the record of a request; false if there is none.
func (r *Releaser) recorded(ctx context.Context, c *client, req locksteward.Request) (source.Outcome, bool, error) {
	path := r.record(req.ID)
	if err := r.sync(ctx, c, path); err != nil {
		return source.Outcome{}, false, err
	}
	full := c.path(path)
	data, err := call(ctx, c, func(conn *zk.Conn) ([]byte, error) {
		data, _, err := conn.Get(full)
		return data, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return source.Outcome{}, false, nil
	case errors.Is(err, zk.ErrNoAuth):
		return source.Outcome{}, false, &rightError{"READ", path}
	case err != nil:
		return source.Outcome{}, false, err
	}
	switch string(data) {
	case recordReleased:
		return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByRecord}, true, nil
	case recordWithdrawn:
		return source.Failed("it was not carried out and is withdrawn"), true, nil
	default:
		return source.Unknown("its record at " + path + " says something else than a releaser writes"), true, nil
	}
}

// Resolve implements [source.Releaser].
func (r *Releaser) Resolve(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	outcome, err := r.resolve(ctx, req)
	if err != nil {
		return source.Outcome{}, r.explained("resolve release", err)
	}
	return outcome, nil
}

// resolve withdraws the request, unless it has a record. The leader decides which of the two
// transactions that make the record comes first.
func (r *Releaser) resolve(ctx context.Context, req locksteward.Request) (outcome source.Outcome, err error) {
	err = r.with(func(c *client) error {
		full := c.path(r.record(req.ID))
		withdraw := func(conn *zk.Conn) (string, error) {
			return conn.Create(full, []byte(recordWithdrawn), zk.FlagPersistent, r.acl(c))
		}
		_, err := call(ctx, c, withdraw)
		if errors.Is(err, zk.ErrNoNode) {
			if err = r.records(ctx, c); err == nil {
				_, err = call(ctx, c, withdraw)
			}
		}
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			var found bool
			if outcome, found, err = r.recorded(ctx, c, req); err == nil && !found {
				err = errors.New("its record went while it was read")
			}
			return err
		case errors.Is(err, zk.ErrNoAuth):
			return &rightError{"CREATE", r.opts.Records}
		case err != nil:
			return err
		case !req.CreatedAt.IsZero() && time.Since(req.CreatedAt) > keepRecords:
			outcome = source.Unknown("a record that it left would be gone by now")
			return nil
		}
		outcome = source.Failed("it was not carried out and is withdrawn")
		return nil
	})
	return outcome, err
}

// prune removes old records, now and then. Nothing depends on it.
func (r *Releaser) prune(ctx context.Context, c *client) {
	now := time.Now()
	r.mu.Lock()
	due := now.Sub(r.pruned) > pruneEvery
	if due {
		r.pruned = now
	}
	r.mu.Unlock()
	if !due {
		return
	}
	rd := reader{client: c}
	names, _, _, err := rd.children(ctx, r.opts.Records)
	if err != nil {
		return
	}
	for _, name := range names[:min(len(names), pruneAtOnce)] {
		path := join(r.opts.Records, name)
		stat, found, err := rd.stat(ctx, path)
		if err != nil {
			return
		}
		if found && now.Sub(time.UnixMilli(stat.Ctime)) > keepRecords {
			full := c.path(path)
			_, _ = call(ctx, c, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(full, stat.Version) })
		}
	}
}
