package etcdsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/locksteward/locksteward"
)

const (
	// pageSize is how many keys are asked for at once.
	pageSize = 1000
	// maxQueue bounds how many keys are read below one name.
	maxQueue = 10_000
	// namesAtOnce is how many names one transaction reads, with two ranges each: etcd
	// takes 128 of them unless configured otherwise.
	namesAtOnce = 50
	// leasesAtOnce is how many leases are asked for at the same time.
	leasesAtOnce = 8
	// expiryTolerance is by how much the expiry of a lease that nobody renewed may
	// differ between two readings: the time left is in whole seconds.
	expiryTolerance = 1500 * time.Millisecond
	// maxLease is more than any lease lasts, so that its end can be computed.
	maxLease = 100 * 365 * 24 * time.Hour
)

// lease is what is left of a lease.
type lease struct {
	gone    bool // there is no such lease
	granted time.Duration
	end     time.Time // at the latest, if nobody renews it
}

// leaseOf asks how long a lease lasts, without its keys, which needs no right to them.
// What etcd says is rounded down; so that a lock is not looked at before it can have
// ended, it is rounded up here.
func (r *reader) leaseOf(ctx context.Context, id int64) (l lease, err error) {
	err = r.do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.TimeToLive(ctx, clientv3.LeaseID(id))
		if err != nil {
			return fmt.Errorf("ask for the time left of a lease: %w", err)
		}
		if l.gone = resp.GrantedTTL <= 0; !l.gone {
			l.granted = seconds(resp.GrantedTTL)
			l.end = r.now().Add(min(seconds(resp.TTL+1), l.granted))
		}
		return nil
	})
	return l, err
}

func seconds(n int64) time.Duration {
	return time.Duration(max(0, min(n, int64(maxLease/time.Second)))) * time.Second
}

// reader asks etcd. Each request first calls before, which waits for its turn.
type reader struct {
	conn   *conn
	before func(ctx context.Context) error
	after  func()
	now    func() time.Time

	mu  sync.Mutex // guards what follows
	rev int64      // the newest revision that was seen
	at  time.Time  // when it was seen last
}

func newReader(c *conn, now func() time.Time) *reader {
	return &reader{conn: c, now: now, before: func(ctx context.Context) error { return ctx.Err() }, after: func() {}}
}

func (r *reader) do(ctx context.Context, fn func(context.Context, *clientv3.Client) error) error {
	if err := r.before(ctx); err != nil {
		return err
	}
	err := r.conn.do(ctx, fn)
	if err == nil {
		r.after()
	}
	return err
}

// newest is the newest revision that was seen.
func (r *reader) newest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rev
}

// stamp returns the time of a reading at rev, ordered as revisions are: etcd has no other
// clock. asked is what newest was before the question. It is false where the answer was
// overtaken by a newer one: it has to be asked for again.
func (r *reader) stamp(rev, asked int64) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if rev < r.rev && rev >= asked {
		return time.Time{}, false
	}
	// Where the revision is before one that was seen before the question, the data was
	// restored from a backup: its revisions count from here on.
	if behind := r.at.Sub(now); behind >= 0 && behind < time.Second {
		now = r.at.Add(time.Microsecond) // else our clock was set back
	}
	r.rev, r.at = rev, now
	return now, true
}

// ordered asks until the answer is not overtaken, and returns its time.
func (r *reader) ordered(ctx context.Context, ask func(context.Context, *clientv3.Client) (rev int64, err error)) (time.Time, error) {
	for {
		asked, rev := r.newest(), int64(0)
		err := r.do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
			rev, err = ask(ctx, client)
			return err
		})
		if err != nil {
			return time.Time{}, err
		}
		if at, ok := r.stamp(rev, asked); ok {
			return at, nil
		}
	}
}

// looked is a reading of one name.
type looked struct {
	name  string
	found *found // nil: nothing is there
	at    time.Time
	err   error // why it could not be read, though others could
}

// names reads locks by name. Names that etcd does not take are not there.
func (r *reader) names(ctx context.Context, names []string) ([]looked, error) {
	var out []looked
	for chunk := range slices.Chunk(names, namesAtOnce) {
		some, err := r.someNames(ctx, chunk)
		if err != nil {
			return out, err
		}
		out = append(out, some...)
	}
	return out, nil
}

func (r *reader) someNames(ctx context.Context, names []string) ([]looked, error) {
	var ops []clientv3.Op
	for _, name := range names {
		if name == "" {
			name = "\x00" // no key is empty, and this is no lock's name
		}
		ops = append(ops, clientv3.OpGet(name), clientv3.OpGet(name+"/", clientv3.WithPrefix(), clientv3.WithLimit(maxQueue)))
	}
	var resp *clientv3.TxnResponse
	at, err := r.ordered(ctx, func(ctx context.Context, client *clientv3.Client) (int64, error) {
		var err error
		if resp, err = client.Txn(ctx).Then(ops...).Commit(); err != nil {
			return 0, err
		}
		return resp.Header.Revision, nil
	})
	single := tooLarge(err) || is(err, rpctypes.ErrPermissionDenied) // it is about some of the names, maybe
	if single && len(names) > 1 {
		first, err := r.someNames(ctx, names[:len(names)/2])
		if err != nil {
			return nil, err
		}
		rest, err := r.someNames(ctx, names[len(names)/2:])
		return append(first, rest...), err
	}
	switch {
	case single:
		return []looked{{name: names[0], at: r.now(), err: fmt.Errorf("read the lock: %w", err)}}, nil
	case err != nil:
		return nil, fmt.Errorf("read locks: %w", err)
	}
	out := make([]looked, 0, len(names))
	for i, name := range names {
		alone, below := resp.Responses[2*i].GetResponseRange(), resp.Responses[2*i+1].GetResponseRange()
		var keys []entry
		for _, kv := range slices.Concat(alone.Kvs, below.Kvs) {
			keys = append(keys, entryOf(kv))
		}
		l := looked{name: name, at: at}
		switch {
		case name == "":
		case below.More:
			l.err = &boundError{prefix: name + "/", keys: maxQueue}
		default:
			l.found = group(keys)[name]
		}
		out = append(out, l)
	}
	return out, nil
}

func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// boundError is a prefix with more keys than may be read.
type boundError struct {
	prefix string
	keys   int
}

// Error returns the sentence.
func (e *boundError) Error() string {
	return fmt.Sprintf("more than %d keys begin with %q, which is more than is read; give the classes patterns that begin as the locks do", e.keys, locksteward.DisplayKey(e.prefix))
}

// scan is what a pass over the prefixes found.
type scan struct {
	rev     int64
	at      time.Time
	keys    []entry
	read    int   // how many prefixes were read
	partial error // why the others were not
}

// scan reads all keys that begin with one of prefixes, as of one revision. page is called
// after each page with the number of its keys.
func (r *reader) scan(ctx context.Context, prefixes []string, most int, page func(keys int)) (*scan, error) {
	out := &scan{}
	var errs []error
	for _, prefix := range prefixes {
		err := r.scanPrefix(ctx, out, prefix, most, page)
		switch {
		case err == nil:
			out.read++
			continue
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		}
		errs = append(errs, fmt.Errorf("read what begins with %q: %w", locksteward.DisplayKey(prefix), err))
		if _, bound := errors.AsType[*boundError](err); !bound && !is(err, rpctypes.ErrPermissionDenied) {
			break // it would be the same with the others
		}
	}
	out.partial = errors.Join(errs...)
	if out.read == 0 && len(out.keys) == 0 {
		return nil, out.partial
	}
	return out, nil
}

func (r *reader) scanPrefix(ctx context.Context, out *scan, prefix string, most int, page func(keys int)) error {
	from, end, limit := prefix, clientv3.GetPrefixRangeEnd(prefix), int64(pageSize)
	if prefix == "" {
		from, end = "\x00", "\x00" // all there is
	}
	for {
		var resp *clientv3.GetResponse
		at, err := r.ordered(ctx, func(ctx context.Context, client *clientv3.Client) (int64, error) {
			var err error
			if resp, err = client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(out.rev)); err != nil {
				return 0, err
			}
			return resp.Header.Revision, nil
		})
		if tooLarge(err) && limit > 1 {
			limit = max(1, limit/4)
			continue
		}
		if err != nil {
			return err
		}
		if out.rev == 0 {
			out.rev, out.at = resp.Header.Revision, at
		}
		for _, kv := range resp.Kvs {
			out.keys = append(out.keys, entryOf(kv))
		}
		page(len(resp.Kvs))
		if !resp.More || len(resp.Kvs) == 0 {
			return nil
		}
		if len(out.keys) >= most {
			return &boundError{prefix: prefix, keys: most}
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// leases asks for what is left of leases, a few at a time.
func (r *reader) leases(ctx context.Context, ids map[int64]lease) error {
	delete(ids, 0)
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(leasesAtOnce)
	for _, id := range slices.Collect(maps.Keys(ids)) {
		group.Go(func() error {
			l, err := r.leaseOf(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			ids[id] = l
			return err
		})
	}
	return group.Wait()
}

// settle asks for the leases of what was looked at. A lease that ends takes its keys with
// it, so where a holder's lease is not there its lock is read again: a key that is still
// there has no lease.
func (r *reader) settle(ctx context.Context, looks []looked) (map[int64]lease, error) {
	leases := map[int64]lease{}
	for i := range looks {
		if f := looks[i].found; f != nil {
			for _, e := range f.keys[:min(len(f.keys), askedWaiters+1)] {
				leases[e.lease] = lease{}
			}
		}
	}
	if err := r.leases(ctx, leases); err != nil {
		return nil, err
	}
	var names []string
	at := map[string]int{}
	for i, l := range looks {
		if l.found != nil && leases[l.found.head().lease].gone {
			at[l.name] = i
			names = append(names, l.name)
		}
	}
	again, err := r.names(ctx, names)
	if err != nil {
		return nil, err
	}
	fresh := map[int64]lease{}
	for _, l := range again {
		looks[at[l.name]] = l
		if l.found == nil {
			continue
		}
		if _, asked := leases[l.found.head().lease]; !asked {
			fresh[l.found.head().lease] = lease{} // of another holder, who came meanwhile
		}
	}
	if err := r.leases(ctx, fresh); err != nil {
		return nil, err
	}
	maps.Copy(leases, fresh)
	return leases, nil
}

// askedWaiters is of how many waiters of one lock the leases are asked for.
const askedWaiters = 100
