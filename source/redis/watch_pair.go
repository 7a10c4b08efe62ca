package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// invalidations is the channel on which the server reports changed keys.
const invalidations = "__redis__:invalidate"

// Times of the two connections. One that is open and carries nothing is found out, and
// both are closed, checkEvery and answerAfter after its last word at the latest: 2.8 s,
// so that with late timers, too, it is less than three. A server that stalls for less
// than answerAfter, at whatever moment, is not taken for dead: a fork of a large server
// or a slow script is no reason to read all its locks again.
const (
	checkEvery   = time.Second
	answerAfter  = 1800 * time.Millisecond // how long a check may take
	confirmAfter = 3 * time.Second         // how long subscribing may take
	silentAfter  = 5 * time.Second         // no word on the subscriber, not even a pong
)

// Errors of a watch.
var (
	errRefused = errors.New("the server does not offer this to us")
	errBroken  = errors.New("the server has lost the redirection")
	errSilent  = errors.New("the subscriber does not answer")
)

// listener is what a pair hands its events to.
type listener struct {
	changed func(keys []string)
	flushed func()
}

// pair is the two connections that watch one master.
//
// The tracker asks for the pushes and the subscriber, a plain pub/sub
// connection, gets them: the server cuts a subscriber off that does not read (32
// MiB by default), while it keeps all that a RESP3 connection does not read, with
// no bound. That is also why the tracker speaks RESP2: RESP3 would push
// a broken redirection with every write.
type pair struct {
	caps       *caps
	prefixes   []string
	tracker    *redis.Client // nil where keyspace notifications are listened to
	subscriber *redis.Client
	pubsub     *redis.PubSub
	id         int64 // the subscriber's, as the server counts clients
	patterns   int   // subscriptions to keyspace notifications

	cut    context.CancelFunc
	pongs  chan string
	ended  chan struct{} // closed when the subscriber listens no more
	failed error         // why; read after ended
	pings  int

	offset time.Duration // server clock less ours, from the tracker's last check
	replID string        // of the server's data; another process has another one
}

// openTracking sets up a pair that reports every change of a key that begins
// with one of prefixes. An error that wraps errRefused will not go away by itself.
func openTracking(ctx context.Context, conn *connect.Conn, caps *caps, addr string, prefixes []string, to listener) (*pair, error) {
	ctx, p := newPair(ctx, conn, addr, prefixes)
	p.caps = caps
	if err := p.track(ctx, conn, addr, to); err != nil {
		p.close()
		return nil, err
	}
	go p.listen(to)
	return p, nil
}

// newPair prepares a pair, and the context of all that is done with it: its connections
// end with that, by close at the latest.
func newPair(ctx context.Context, conn *connect.Conn, addr string, prefixes []string) (context.Context, *pair) {
	p := &pair{prefixes: prefixes, pongs: make(chan string, 8), ended: make(chan struct{})}
	ctx, p.cut = context.WithCancel(ctx)
	p.subscriber = conn.Subscriber(ctx, addr, "-subscriber", func(ctx context.Context, cn *redis.Conn) (err error) {
		p.id, err = cn.ClientID(ctx).Result()
		return err
	})
	return ctx, p
}

func (p *pair) track(ctx context.Context, conn *connect.Conn, addr string, to listener) error {
	p.pubsub = p.subscriber.Subscribe(ctx, invalidations)
	if err := p.awaitSubscriptions(ctx, 1, to); err != nil {
		return err
	}
	p.tracker = conn.Dedicated(ctx, addr, "-tracker", nil)
	args := []any{"client", "tracking", "on", "redirect", p.id, "bcast"}
	for _, prefix := range p.prefixes {
		args = append(args, "prefix", prefix)
	}
	if err := p.tracker.Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("switch on tracking: %w", refusal(err))
	}
	if err := p.checkTracker(ctx); err != nil {
		return fmt.Errorf("check tracking: %w", refusal(err))
	}
	return nil
}

// awaitSubscriptions waits until the server has confirmed n of them. A change that
// one of them reports may come before the confirmation of the next, or of its own
// (redis/redis#13645): it is handed on.
func (p *pair) awaitSubscriptions(ctx context.Context, n int, to listener) error {
	ctx, cancel := context.WithTimeoutCause(ctx, confirmAfter, errSilent)
	defer cancel()
	for confirmed := 0; confirmed < n; {
		got, err := p.receive(ctx, confirmAfter)
		switch m := got.(type) {
		case *redis.Subscription:
			confirmed++
		case *redis.Message:
			p.hear(m, to)
		default:
			if err == nil {
				err = fmt.Errorf("got %T in place of a confirmation", got)
			}
			return fmt.Errorf("subscribe: %w", refusal(err))
		}
		// Changes without end are no confirmation.
		if ctx.Err() != nil {
			return fmt.Errorf("subscribe: %w", context.Cause(ctx))
		}
	}
	return nil
}

// refusal marks an error that says that the server, or the ACL, will not.
func refusal(err error) error {
	if judge(err) == without || redis.HasErrorPrefix(err, "syntax error") || redis.HasErrorPrefix(err, "ERR syntax error") {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// listen hands events on until the subscriber ends.
func (p *pair) listen(to listener) {
	defer close(p.ended)
	ctx := context.Background() // the end comes by close
	for {
		got, err := p.receive(ctx, silentAfter)
		if err != nil {
			if noWrites(err) {
				p.pong(refusedPing)
				continue
			}
			p.failed = err
			return
		}
		switch m := got.(type) {
		case *redis.Message:
			p.hear(m, to)
		case *redis.Pong:
			p.pong(m.Payload)
		}
	}
}

// refusedPing is the answer to a PING by a server that cannot save what it has: an
// error in its place in the stream is as good as a pong.
const refusedPing = "refused"

func (p *pair) pong(text string) {
	select {
	case p.pongs <- text:
	default: // nobody waits for so old an answer
	}
}

// receive waits for the next message.
func (p *pair) receive(ctx context.Context, timeout time.Duration) (any, error) {
	return respcheck.Message(p.subscriber.Options().Addr, func() (any, error) { return p.pubsub.ReceiveTimeout(ctx, timeout) })
}

// hear hands on the keys that a message reports. That of a FLUSHALL or FLUSHDB names
// none.
func (p *pair) hear(m *redis.Message, to listener) {
	switch {
	case m.Channel == invalidations && m.PayloadSlice != nil && len(m.PayloadSlice) == 0: // nil: anybody may publish text there
		to.flushed()
	case m.Channel == invalidations:
		to.changed(m.PayloadSlice)
	case p.patterns > 0:
		if _, key, ok := strings.Cut(m.Channel, "__:"); ok {
			to.changed([]string{key})
		}
	}
}

// check asks both connections for a sign of life, and the server whether it
// still tracks for us. The pong comes behind all pushes that were sent before,
// so that after a good check no push from before it is on its way any more.
func (p *pair) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerAfter, errSilent)
	defer cancel()
	if p.tracker != nil {
		if err := p.checkTracker(ctx); err != nil {
			return fmt.Errorf("check the tracker: %w", err)
		}
	}
	p.pings++
	want := strconv.Itoa(p.pings)
	if err := p.pubsub.Ping(ctx, want); err != nil {
		return fmt.Errorf("ping the subscriber: %w", err)
	}
	for {
		select {
		case got := <-p.pongs:
			if got == want || got == refusedPing {
				return nil
			}
		case <-p.ended:
			return fmt.Errorf("listen: %w", p.failed)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// checkTracker asks for the state of the tracking, the server's role and time.
func (p *pair) checkTracker(ctx context.Context) error {
	info := redis.NewSliceCmd(ctx, "client", "trackinginfo")
	now := timeCmd(ctx)
	cmds := []redis.Cmder{info, now}
	role := redis.NewStringCmd(ctx, "info", "replication")
	askRole := p.caps.has("info")
	if askRole {
		cmds = append(cmds, role)
	}
	pipe := p.tracker.Pipeline()
	if err := pipe.BatchProcess(ctx, cmds...); err != nil {
		return err
	}
	began := time.Now()
	_, _ = pipe.Exec(ctx) // each command has its own error
	took := time.Since(began)
	if err := info.Err(); err != nil {
		return err
	}
	switch {
	case !askRole:
	case role.Err() == nil:
		i := parseInfo(role.Val())
		if i.replica() {
			return errDemoted
		}
		p.replID = i["master_replid"]
	case judge(role.Err()) == without:
		p.caps.refuse("info", role.Err())
	}
	if now.Err() == nil {
		p.offset = now.Val().Sub(began.Add(took / 2))
	}
	return p.judgeTracking(info.Val())
}

// judgeTracking reads the answer of CLIENT TRACKINGINFO: pairs of names and
// values.
func (p *pair) judgeTracking(reply []any) error {
	var flags, prefixes []string
	redirect := int64(-1)
	for i := 0; i+1 < len(reply); i += 2 {
		switch reply[i] {
		case "flags":
			flags = textsOf(reply[i+1])
		case "redirect":
			redirect, _ = reply[i+1].(int64)
		case "prefixes":
			prefixes = textsOf(reply[i+1])
		}
	}
	slices.Sort(prefixes)
	switch {
	case slices.Contains(flags, "broken_redirect"):
		return errBroken
	case !slices.Contains(flags, "on") || !slices.Contains(flags, "bcast"):
		return fmt.Errorf("%w: its flags are %q", errBroken, flags)
	case redirect != p.id:
		return fmt.Errorf("%w: it redirects to client %d, not %d", errBroken, redirect, p.id)
	case !slices.Equal(prefixes, p.prefixes):
		return fmt.Errorf("%w: it reports %d prefixes, not our %d", errBroken, len(prefixes), len(p.prefixes))
	}
	return nil
}

func textsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// close ends both connections, and with them the listener, if it runs, which closes
// ended. What the closing itself says interests nobody.
func (p *pair) close() {
	if p.tracker != nil {
		_ = p.tracker.Close()
	}
	if p.pubsub != nil {
		_ = p.pubsub.Close()
	}
	_ = p.subscriber.Close()
	p.cut()
}
