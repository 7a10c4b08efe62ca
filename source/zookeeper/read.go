package zksource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
)

const (
	// maxWaiters is how many waiters of a lock are read; of more only their number is known.
	maxWaiters = 200
	// maxShared is how many holds of one semaphore or read lock are read.
	maxShared = 10_000
	// attempts is how often a directory is read again that changed meanwhile.
	attempts = 10
)

// hold is one hold as it was read.
type hold struct {
	name string // of the lock
	path string // of its node
	member
	stat    zk.Stat
	data    []byte
	at      time.Time // when reading began
	count   int       // how many wait
	waiters []waiter  // all of them, or none
}

// waiter is one who waits.
type waiter struct {
	member
	stat zk.Stat
}

// pathError is trouble with one node.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

// errChanging is a directory of which no two looks agree.
var errChanging = errors.New("it changes faster than it can be read")

// errManyHolds is a directory with more holds than are read.
var errManyHolds = fmt.Errorf("more than %d hold it at once, which is more than is read", maxShared)

// reader reads nodes by one client.
type reader struct {
	client *client
	// watch has the server send one event for the next change of each directory that is read.
	watch bool
	// reads is called with each answer.
	reads func()
}

// children reads the names of a node's children and its stat; false if there is no such node.
func (r reader) children(ctx context.Context, path string) (names []string, stat zk.Stat, found bool, err error) {
	type listing struct {
		names []string
		stat  *zk.Stat
	}
	full := r.client.path(path)
	got, err := call(ctx, r.client, func(c *zk.Conn) (l listing, err error) {
		if r.watch {
			l.names, l.stat, _, err = c.ChildrenW(full)
		} else {
			l.names, l.stat, err = c.Children(full)
		}
		return l, err
	})
	r.answered(err)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrInvalidPath):
		return nil, zk.Stat{}, false, nil
	case err != nil:
		return nil, zk.Stat{}, false, &pathError{path, err}
	}
	return got.names, *got.stat, true, nil
}

// stat reads the stat of a node; false if there is no such node. Its appearance or end is
// watched if a watch is asked for.
func (r reader) stat(ctx context.Context, path string) (zk.Stat, bool, error) {
	type answer struct {
		found bool
		stat  *zk.Stat
	}
	full := r.client.path(path)
	got, err := call(ctx, r.client, func(c *zk.Conn) (a answer, err error) {
		if r.watch {
			a.found, a.stat, _, err = c.ExistsW(full)
		} else {
			a.found, a.stat, err = c.Exists(full)
		}
		return a, err
	})
	r.answered(err)
	switch {
	case errors.Is(err, zk.ErrInvalidPath):
		return zk.Stat{}, false, nil
	case err != nil:
		return zk.Stat{}, false, &pathError{path, err}
	case !got.found:
		return zk.Stat{}, false, nil
	}
	return *got.stat, true, nil
}

// node reads stat and data of a node; false if there is no such node. Servers keep no more than
// 1 MB for one.
func (r reader) node(ctx context.Context, path string) (zk.Stat, []byte, bool, error) {
	type answer struct {
		data []byte
		stat *zk.Stat
	}
	full := r.client.path(path)
	got, err := call(ctx, r.client, func(c *zk.Conn) (a answer, err error) {
		a.data, a.stat, err = c.Get(full)
		return a, err
	})
	r.answered(err)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return zk.Stat{}, nil, false, nil
	case errors.Is(err, zk.ErrNoAuth):
		// Its stat needs no right: who holds is known without its data.
		r.watch = false
		stat, found, err := r.stat(ctx, path)
		return stat, nil, found, err
	case err != nil:
		return zk.Stat{}, nil, false, &pathError{path, err}
	}
	return *got.stat, got.data, true, nil
}

func (r reader) answered(err error) {
	if err == nil && r.reads != nil {
		r.reads()
	}
}

// directory reads the holds at a path: of a lock directory, a semaphore, or a fixed node. With
// a watch it also reports the creation of the path.
func (r reader) directory(ctx context.Context, path string) ([]hold, error) {
	for range attempts {
		at := time.Now()
		names, stat, found, err := r.children(ctx, path)
		if err == nil && !found && r.watch {
			if _, found, err = r.stat(ctx, path); err == nil && found {
				continue // it came in between
			}
		}
		if err != nil || !found {
			return nil, err
		}
		holds, stable, err := r.recipe(ctx, at, path, names, stat)
		if err != nil || stable {
			return holds, err
		}
	}
	return nil, &pathError{path, errChanging}
}

// recipe reads the holds at a path that has these children; stable is false if a holder's node
// went meanwhile.
func (r reader) recipe(ctx context.Context, at time.Time, path string, names []string, stat zk.Stat) (holds []hold, stable bool, err error) {
	if stat.EphemeralOwner != 0 {
		_, base := splitPath(path)
		m := member{name: base, seq: -1, kind: kindFixed, library: libraryFixed}
		if kazooLease.MatchString(base) {
			m.library = libraryKazoo
		}
		return r.holds(ctx, at, []hold{{name: path, path: path, member: m}})
	}
	var members []member
	for _, name := range names {
		if m, ok := parseMember(name); ok {
			members = append(members, m)
		}
	}
	if len(members) > 0 {
		return r.queue(ctx, at, path, members)
	}
	if slices.Contains(names, leasesName) && slices.Contains(names, locksName) {
		return r.semaphore(ctx, at, path)
	}
	return nil, true, nil
}

// queue reads those who hold a lock directory.
func (r reader) queue(ctx context.Context, at time.Time, path string, members []member) ([]hold, bool, error) {
	slices.SortFunc(members, func(a, b member) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.name, b.name)) })
	n := 1
	if members[0].shared() {
		for n < len(members) && members[n].kind == members[0].kind {
			n++
		}
	}
	if n > maxShared {
		return nil, false, &pathError{path, errManyHolds}
	}
	var holds []hold
	for _, m := range members[:n] {
		h := hold{name: path, path: join(path, m.name), member: m}
		if m.shared() {
			h.name = h.path
		}
		holds = append(holds, h)
	}
	out, stable, err := r.holds(ctx, at, holds)
	if err != nil || !stable || len(out) == 0 {
		return nil, stable, err
	}
	out[0].count = len(members) - n
	out[0].waiters, err = r.waiters(ctx, path, members[n:])
	return out, true, err
}

// semaphore reads the leases of a Curator semaphore. Who asks for one takes the mutex in
// locks/, makes its node in leases/ and waits there, with the mutex, until few enough are
// before it: so the newest lease of the mutex's session holds nothing yet.
func (r reader) semaphore(ctx context.Context, at time.Time, path string) ([]hold, bool, error) {
	asking, _, _, err := r.children(ctx, join(path, locksName))
	if err != nil {
		return nil, false, err
	}
	names, _, _, err := r.children(ctx, join(path, leasesName))
	if err != nil {
		return nil, false, err
	}
	var holds []hold
	for _, name := range names {
		if m, ok := parseMember(name); ok && m.kind == kindLease {
			p := join(join(path, leasesName), name)
			holds = append(holds, hold{name: p, path: p, member: m})
		}
	}
	if len(holds) > maxShared {
		return nil, false, &pathError{path, errManyHolds}
	}
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.seq, b.seq) })
	holds, stable, err := r.holds(ctx, at, holds)
	if err != nil || !stable {
		return nil, stable, err
	}
	var queue []member
	for _, name := range asking {
		if m, ok := parseMember(name); ok {
			queue = append(queue, m)
		}
	}
	slices.SortFunc(queue, func(a, b member) int { return cmp.Compare(a.seq, b.seq) })
	if len(holds) == 0 || len(queue) == 0 {
		return holds, true, nil
	}
	head, err := r.waiters(ctx, join(path, locksName), queue[:1])
	if err != nil {
		return nil, false, err
	}
	if last := len(holds) - 1; last > 0 && len(head) > 0 && head[0].stat.EphemeralOwner == holds[last].stat.EphemeralOwner {
		holds = holds[:last]
	}
	holds[0].count = len(queue)
	holds[0].waiters, err = r.waiters(ctx, join(path, locksName), queue)
	return holds, true, err
}

// holds reads the nodes of those who hold; false if one of them went meanwhile.
func (r reader) holds(ctx context.Context, at time.Time, holds []hold) ([]hold, bool, error) {
	for i := range holds {
		h := &holds[i]
		stat, data, found, err := r.node(ctx, h.path)
		if err != nil || !found {
			return nil, false, err
		}
		h.at, h.stat, h.data = at, stat, data
	}
	return slices.DeleteFunc(holds, func(h hold) bool { return h.seq < 0 && h.stat.EphemeralOwner == 0 }), true, nil
}

// waiters reads those who wait, unless they are too many.
func (r reader) waiters(ctx context.Context, path string, members []member) ([]waiter, error) {
	if len(members) > maxWaiters {
		return nil, nil
	}
	r.watch = false
	var out []waiter
	for _, m := range members {
		stat, found, err := r.stat(ctx, join(path, m.name))
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, waiter{m, stat})
		}
	}
	return out, nil
}

// identity is how surely the hold can be distinguished from the next one of its name.
func (h *hold) identity() locksteward.Identity {
	if h.fresh {
		return locksteward.IdentityStrong
	}
	return locksteward.IdentityLineage
}

// token is what distinguishes the hold from any other: its node, and the transaction that
// made it.
func (h *hold) token() []byte {
	return strconv.AppendInt(append([]byte(h.path), 0), h.stat.Czxid, 10)
}

func (h *hold) typeName() string {
	if h.stat.EphemeralOwner == 0 {
		return "persistent"
	}
	return "ephemeral"
}

// holder is what the hold says of who has it.
func (h *hold) holder() locksteward.Holder { return locksteward.Holder{Host: hostOf(h.data)} }

// evidence is what a request freezes of the hold, as far as it is compared.
func (h *hold) evidence(digest locksteward.DigestKey) locksteward.Evidence {
	return locksteward.Evidence{
		Key: h.name, Type: h.typeName(), Library: h.library, Identity: h.identity(), TokenDigest: digest.Value(h.token()),
		ExpireAt: locksteward.NoExpireAt, Count: 1, Holder: h.holder(),
	}
}

// sessionID is how ZooKeeper writes the id of a session.
func sessionID(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// observation is the hold as the scanner takes it, but for what follows from the classes and
// from other locks.
func (h *hold) observation(digest locksteward.DigestKey) *locksteward.Observation {
	o := &locksteward.Observation{
		Key: h.name, Type: h.typeName(), At: h.at, Lifetime: locksteward.LifetimePersistent,
		TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt, Idle: -1, Size: int64(h.stat.DataLength),
		Kind: locksteward.KindLock, Library: h.library, Confidence: locksteward.ConfidenceHigh, Identity: h.identity(),
		TokenDigest: digest.Value(h.token()), Acquired: time.UnixMilli(h.stat.Ctime), Asked: h.kind != kindFixed,
		Holder: h.holder(), Count: 1, Waiters: h.count,
	}
	switch {
	case h.library == libraryUnknown:
		o.Confidence = locksteward.ConfidenceLow
	case !h.fresh:
		o.Confidence = locksteward.ConfidenceMedium
	}
	switch h.kind {
	case kindRead:
		o.Mode = "read"
	case kindWrite:
		o.Mode = "write"
	}
	if h.stat.EphemeralOwner != 0 {
		o.Lifetime = locksteward.LifetimeSession
		o.Session = &locksteward.Session{ID: sessionID(h.stat.EphemeralOwner)}
	}
	return o
}
