package etcdsource

import (
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

const (
	// recordTTL is how long the record of a release is kept.
	recordTTL = 7 * 24 * time.Hour
	// What a record says.
	recordReleased, recordWithdrawn = "released", "withdrawn"
	// resolvePause is between two questions to an etcd that does not answer.
	resolvePause = 100 * time.Millisecond
)

// Releaser frees locks of one etcd: one transaction deletes the key if it still is of the
// same create revision and lease, and leaves a record. It has a connection only while a
// method runs. It is safe for concurrent use. Make one with [OpenReleaser].
type Releaser struct {
	login  source.Login
	digest locksteward.DigestKey
	// before is called before each request; nil outside of tests.
	before func(ctx context.Context) error
}

var _ source.Releaser = (*Releaser)(nil)

// OpenReleaser returns a releaser with a login of its own, or what is wrong with that. It
// does no I/O. Of the options the digest counts, which is that of the source.
func OpenReleaser(login source.Login, opts Options) (*Releaser, error) {
	if _, err := newConn(login); err != nil {
		return nil, err
	}
	return &Releaser{login: login, digest: opts.Digest}, nil
}

// Limits implements [source.Releaser].
func (*Releaser) Limits(hold locksteward.Evidence) source.Limits {
	out := source.Limits{
		Placeholder: "nothing can be put in the place of a lock in etcd, since its clients know their holds by the revision that made the key",
		Undo:        "a lock in etcd cannot be put back, since its holder knows it by the revision that made the key",
	}
	if hold.TokenDigest == "" {
		out.Release = refused("the hold of %q is not known", hold.Key)
	}
	if hold.Library == unknown {
		out.Decision = "nobody can say by its format what writes this key, and whether its writer looks at it again"
	}
	return out
}

func refused(format, key string) error {
	return fmt.Errorf("%w: %s", locksteward.ErrRefused, fmt.Sprintf(format, locksteward.DisplayKey(key)))
}

// refusal is why a request cannot be carried out whatever stands there; nil if it can.
func (r *Releaser) refusal(e locksteward.Evidence) error {
	limits := r.Limits(e)
	switch {
	case limits.Release != nil:
		return limits.Release
	case e.Act == locksteward.ActUndo:
		return fmt.Errorf("%w: %s", locksteward.ErrRefused, limits.Undo)
	case e.Act != locksteward.ActRelease || e.Placeholder > 0:
		return fmt.Errorf("%w: %s", locksteward.ErrRefused, limits.Placeholder)
	}
	return nil
}

// current is what a request is compared with.
type current struct {
	found       *found // nil: nothing is there
	evidence    locksteward.Evidence
	differences []string
}

// evidenceOf is what a release compares of an observation.
func evidenceOf(o *locksteward.Observation) locksteward.Evidence {
	return locksteward.Evidence{
		Key: o.Key, Library: o.Library, Type: o.Type, Identity: o.Identity, TokenDigest: o.TokenDigest,
		ExpireAt: o.ExpireAt, Count: o.Count, Holder: o.Holder, Fence: o.Fence,
	}
}

// read reads the lock of a request and compares it.
func (r *Releaser) read(ctx context.Context, rd *reader, was locksteward.Evidence) (current, error) {
	looks, err := rd.names(ctx, []string{was.Key})
	if err != nil {
		return current{}, err
	}
	leases, err := rd.settle(ctx, looks)
	switch {
	case err != nil:
		return current{}, err
	case looks[0].err != nil:
		return current{}, looks[0].err
	case looks[0].found == nil:
		return current{}, nil
	}
	o, _ := looks[0].found.reading(looks[0].at, leases, r.digest)
	out := current{found: looks[0].found, evidence: evidenceOf(&o)}
	is := out.evidence
	if was.ExpireAt > 0 && is.ExpireAt > 0 && time.Duration(max(was.ExpireAt-is.ExpireAt, is.ExpireAt-was.ExpireAt))*time.Millisecond <= expiryTolerance {
		is.ExpireAt = was.ExpireAt
	}
	out.differences = source.Differences(was, is)
	return out, nil
}

// with passes a reader with a connection of its own to fn.
func (r *Releaser) with(fn func(*reader) error) error {
	c, err := newConn(r.login)
	if err != nil {
		return err
	}
	defer c.close()
	rd := newReader(c, time.Now)
	if r.before != nil {
		rd.before = r.before
	}
	return fn(rd)
}

// Preview implements [source.Releaser].
func (r *Releaser) Preview(ctx context.Context, req locksteward.Request) (source.Preview, error) {
	var now current
	err := r.with(func(rd *reader) (err error) {
		now, err = r.read(ctx, rd, req.Evidence)
		return err
	})
	switch {
	case err != nil:
		return source.Preview{}, fmt.Errorf("preview release: %s", explain(err))
	case now.found == nil:
		return source.Preview{}, nil
	}
	out := source.Preview{Found: true, Now: now.evidence, Differences: now.differences}
	asked := req.Evidence
	asked.TokenDigest = now.evidence.TokenDigest
	if out.Refusal = r.refusal(asked); out.Refusal == nil {
		out.Keys = []string{now.found.head().key, recordPrefix + req.ID}
		out.Script = script(now.found)
		out.Args = []string{strconv.FormatInt(now.found.head().create, 10), strconv.FormatInt(now.found.head().lease, 16)}
	}
	return out, nil
}

// script is the transaction for people, with what it does to others.
func script(f *found) string {
	text := `if create_revision(KEYS[1]) = ARGV[1] and lease(KEYS[1]) = ARGV[2] and create_revision(KEYS[2]) = 0
then delete KEYS[1]; put KEYS[2] "` + recordReleased + `"
# The key alone goes; its lease and the other keys of it stay.
# The holder does not learn of it unless it watches the key: if it lives, it works on without the lock.`
	if f.queue && len(f.keys) > 1 {
		text += "\n# The first of those who wait has the lock then."
	}
	return text
}

// Release implements [source.Releaser]. If the answer to the transaction is lost, its
// record says what became of it.
func (r *Releaser) Release(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	if err := r.refusal(req.Evidence); err != nil {
		return source.Failed(err.Error()), nil
	}
	var out source.Outcome
	sent := false
	cause := r.with(func(rd *reader) (err error) {
		out, sent, err = r.act(ctx, rd, req)
		return err
	})
	switch {
	case cause == nil:
		return out, nil
	case !sent:
		return source.Failed(explain(cause)), nil
	}
	for {
		state, err := r.withdraw(ctx, req)
		switch {
		case err == nil && state == recordReleased:
			return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByRecord}, nil
		case err == nil:
			return source.Failed(explain(cause)), nil // it had not run, and never will
		}
		select {
		case <-ctx.Done():
			return source.Outcome{}, fmt.Errorf("execute release: %s; then: %s", explain(cause), explain(err))
		case <-time.After(resolvePause):
		}
	}
}

// act reads, compares and deletes. sent says that the transaction may have reached etcd.
func (r *Releaser) act(ctx context.Context, rd *reader, req locksteward.Request) (out source.Outcome, sent bool, err error) {
	now, err := r.read(ctx, rd, req.Evidence)
	switch {
	case err != nil:
		return source.Outcome{}, false, err
	case now.found == nil || len(now.differences) > 0:
		return r.notThere(ctx, rd, req, now)
	}
	lease, err := grant(ctx, rd)
	if err != nil {
		return source.Outcome{}, false, err
	}
	head, record := now.found.head(), recordPrefix+req.ID
	var resp *clientv3.TxnResponse
	err = rd.do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
		resp, err = client.Txn(ctx).If(
			clientv3.Compare(clientv3.CreateRevision(record), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(head.key), "=", head.create),
			clientv3.Compare(clientv3.LeaseValue(head.key), "=", head.lease),
		).Then(
			clientv3.OpDelete(head.key), clientv3.OpPut(record, recordReleased, clientv3.WithLease(lease)),
		).Else(clientv3.OpGet(record), clientv3.OpGet(head.key)).Commit()
		return err
	})
	switch {
	case err != nil:
		return source.Outcome{}, !is(err, rpctypes.ErrPermissionDenied) && !is(err, rpctypes.ErrNoSpace), err
	case resp.Succeeded:
		return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByAnswer, WaitersWoken: int64(min(len(now.found.keys)-1, 1))}, true, nil
	}
	revoke(ctx, rd, lease)
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return recorded(string(kvs[0].Value)), true, nil
	}
	if len(resp.Responses[1].GetResponseRange().Kvs) == 0 {
		return source.Outcome{State: locksteward.RequestAlreadyGone, ConfirmedBy: source.ConfirmedByAnswer}, true, nil
	}
	return source.Outcome{
		State: locksteward.RequestChanged, ConfirmedBy: source.ConfirmedByAnswer,
		Differences: []string{"it changed in the moment of the release"},
	}, true, nil
}

// notThere is the outcome where the hold is not there: what an earlier run of the request
// left, if there was one.
func (r *Releaser) notThere(ctx context.Context, rd *reader, req locksteward.Request, now current) (source.Outcome, bool, error) {
	var resp *clientv3.GetResponse
	err := rd.do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
		resp, err = client.Get(ctx, recordPrefix+req.ID)
		return err
	})
	switch {
	case err != nil:
		return source.Outcome{}, false, err
	case len(resp.Kvs) > 0:
		return recorded(string(resp.Kvs[0].Value)), false, nil
	case now.found == nil:
		return source.Outcome{State: locksteward.RequestAlreadyGone}, false, nil
	}
	return source.Outcome{State: locksteward.RequestChanged, Differences: now.differences}, false, nil
}

// recorded is the outcome in a record.
func recorded(value string) source.Outcome {
	if value == recordReleased {
		return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByRecord}
	}
	return source.Failed("it was withdrawn before")
}

// Resolve implements [source.Releaser]. Where there is no record, one is left that keeps
// the request from ever being carried out.
func (r *Releaser) Resolve(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	state, err := r.withdraw(ctx, req)
	if err != nil {
		return source.Outcome{}, fmt.Errorf("resolve release: %s", explain(err))
	}
	if state == recordReleased {
		return recorded(state), nil
	}
	var now current
	err = r.with(func(rd *reader) (err error) {
		now, err = r.read(ctx, rd, req.Evidence)
		return err
	})
	switch {
	case err != nil:
		return source.Outcome{}, fmt.Errorf("resolve release: %s", explain(err))
	case now.found != nil && now.evidence.TokenDigest == req.Evidence.TokenDigest:
		return source.Failed("it was not carried out and is withdrawn; the lock is still held"), nil
	}
	return source.Unknown("etcd has no record of it, and the lock is not as it was"), nil
}

// withdraw returns what the record of a request says, and makes one where there is none.
func (r *Releaser) withdraw(ctx context.Context, req locksteward.Request) (state string, err error) {
	err = r.with(func(rd *reader) error {
		lease, err := grant(ctx, rd)
		if err != nil {
			return err
		}
		var resp *clientv3.TxnResponse
		record := recordPrefix + req.ID
		err = rd.do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
			resp, err = client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(record), "=", 0)).
				Then(clientv3.OpPut(record, recordWithdrawn, clientv3.WithLease(lease))).Else(clientv3.OpGet(record)).Commit()
			return err
		})
		switch {
		case err != nil:
			return err
		case resp.Succeeded:
			state = recordWithdrawn
			return nil
		}
		revoke(ctx, rd, lease)
		state = string(resp.Responses[0].GetResponseRange().Kvs[0].Value)
		return nil
	})
	return state, err
}

// grant makes the lease of a record.
func grant(ctx context.Context, rd *reader) (id clientv3.LeaseID, err error) {
	err = rd.do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Grant(ctx, int64(recordTTL/time.Second))
		if err != nil {
			return fmt.Errorf("make the lease of the record: %w", err)
		}
		id = resp.ID
		return nil
	})
	return id, err
}

// revoke ends the lease of a record that was not made; if that fails, it ends by itself.
func revoke(ctx context.Context, rd *reader, id clientv3.LeaseID) {
	_ = rd.do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Revoke(ctx, id)
		return err
	})
}
