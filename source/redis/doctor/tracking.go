package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

const (
	// invalidations is the channel of redirected pushes.
	invalidations = "__redis__:invalidate"
	// listenFor is how long a push is waited for: heartbeats of our library come
	// every 5 s, so that more would seldom help.
	listenFor = 1500 * time.Millisecond
	// pushKeyLife is how long the key of a push test lives.
	pushKeyLife = 2 * time.Second
)

// pushKey is the name of the one key of a push test: what would stand beside a
// lock after its release, where nobody takes it for a lock, and where the
// releaser may write.
func (e *exam) pushKey() string {
	lock := "locksteward-doctor"
	for _, c := range e.Classes.All() {
		if e.Release != nil && c.Releasable() {
			lock = example(c.Match[0])
			break
		}
	}
	return record.Companion(record.DefaultPrefix, record.KindExec, lock)
}

// trackedPrefixes are beginnings of names that the watch would ask for, at most a
// few: the point is whether pushes come.
func (e *exam) trackedPrefixes() []string {
	list := []string{record.DefaultPrefix}
	for _, c := range e.Classes.All() {
		for _, glob := range c.Match {
			if p := class.LiteralPrefix(glob); len(p) >= 3 {
				list = append(list, p)
			}
		}
	}
	if len(list) == 1 {
		list = append(list, "lock:", "locks:", "mutex:", "redlock:")
	}
	slices.Sort(list)
	var apart []string // the server refuses prefixes that overlap
	for _, p := range list {
		if len(apart) == 0 || !strings.HasPrefix(p, apart[len(apart)-1]) {
			apart = append(apart, p)
		}
	}
	return apart[:min(len(apart), 64)]
}

// tracking sets up what the watch sets up, on connections of its own, and waits
// for a push.
func (e *exam) tracking(ctx context.Context, m connect.Master) {
	if e.Redis.Watch == source.WatchOff || e.Redis.Watch == source.WatchKeyspace {
		e.report.add("tracking", OK, m.Addr, "not asked for (watch: "+string(e.Redis.Watch)+")", "")
		return
	}
	var id int64
	ear := e.conn.Dedicated(ctx, m.Addr, "-subscriber", func(ctx context.Context, cn *redis.Conn) (err error) {
		id, err = cn.ClientID(ctx).Result()
		return err
	})
	defer func() { _ = ear.Close() }()
	mouth := e.conn.Dedicated(ctx, m.Addr, "-tracker", nil)
	defer func() { _ = mouth.Close() }()
	const alone = "changes are seen by sweeps alone, up to a schedule's interval late"
	refused := func(what string, err error) {
		e.report.add("tracking", Warn, m.Addr, what+": "+alone, connect.Explain(err))
	}
	pubsub := ear.Subscribe(ctx, invalidations)
	defer func() { _ = pubsub.Close() }()
	if _, err := respcheck.Message(m.Addr, func() (any, error) { return pubsub.Receive(ctx) }); err != nil {
		refused("the channel of pushes cannot be subscribed to", err)
		return
	}
	args := []any{"client", "tracking", "on", "redirect", id, "bcast"}
	for _, p := range e.trackedPrefixes() {
		args = append(args, "prefix", p)
	}
	if err := mouth.Do(ctx, args...).Err(); err != nil {
		refused("CLIENT TRACKING is refused", err)
		return
	}
	if err := mouth.Do(ctx, "client", "trackinginfo").Err(); err != nil {
		if isMissingCommand(err) {
			e.report.add("tracking", Warn, m.Addr, "the server has no CLIENT TRACKINGINFO, which came with Redis 6.2, so it does not say whether it tracks: "+alone,
				"update the server to 6.2 or later; or set notify-keyspace-events to KA, which the agent listens to where it cannot track")
			return
		}
		refused("the server does not say whether it tracks", err)
		return
	}
	e.listen(ctx, m, pubsub)
}

// listen waits for a push of a key that somebody writes, we ourselves if that is
// asked for.
func (e *exam) listen(ctx context.Context, m connect.Master, pubsub *redis.PubSub) {
	began := time.Now()
	if e.PushTest {
		addr, err := e.write(ctx)
		if err != nil {
			e.report.add("tracking", Fail, m.Addr, "the key of the push test cannot be written", connect.Explain(err))
			return
		}
		if addr != m.Addr {
			e.report.add("tracking", OK, m.Addr, "is switched on; the key of the push test is on another master", "")
			return
		}
	}
	for time.Since(began) < listenFor {
		got, err := respcheck.Message(m.Addr, func() (any, error) { return pubsub.ReceiveTimeout(ctx, listenFor-time.Since(began)) })
		if err != nil {
			break // nobody writes, or ctx ended, which is reported at the end
		}
		if push, ok := got.(*redis.Message); ok && (!e.PushTest || slices.Contains(push.PayloadSlice, e.pushKey())) {
			e.report.add("tracking", OK, m.Addr, "works: a push came", "")
			return
		}
	}
	if e.PushTest {
		e.report.add("tracking", Fail, m.Addr, fmt.Sprintf("is switched on, but no push came for a key that was written, in %s", listenFor),
			"look for a proxy between here and the server that drops pushes; with watch: off changes are seen by sweeps alone")
		return
	}
	e.report.add("tracking", OK, m.Addr, fmt.Sprintf("is switched on; nobody wrote a watched key in %s, so no push could come (--push-test writes one)", listenFor), "")
}

// write puts the key of the push test on the master that owns it.
func (e *exam) write(ctx context.Context) (addr string, err error) {
	conn := e.conn
	if e.Release != nil {
		if conn, err = connect.Open(*e.Release); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
	}
	key := e.pushKey()
	master, err := conn.MasterFor(ctx, key)
	if err != nil {
		return "", err
	}
	return master.Addr, master.Client.Set(ctx, key, "a test of locksteward doctor", pushKeyLife).Err()
}
