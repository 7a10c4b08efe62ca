package lock

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/heartbeat"
	"github.com/locksteward/locksteward/lock/internal/push"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

var (
	//go:embed acquire.lua
	acquireText string
	//go:embed renew.lua
	renewText string
	//go:embed release.lua
	releaseText string

	acquireScript = transport.NewScript("acquire", acquireText, transport.Shared)
	renewScript   = transport.NewScript("renew", renewText, transport.Now)
	releaseScript = transport.NewScript("release", releaseText, transport.First)
	leaveScript   = transport.NewScript("leave", releaseText, transport.Now) // of a waiter that gave up
)

// evaler is what a client sends to: a transport.Server, or a backend.Backend.
type evaler interface {
	// Eval runs one script in one round trip.
	Eval(ctx context.Context, s *transport.Script, keys []string, args []any) (any, error)
	Delete(ctx context.Context, key string) error
	Close() error
}

// Client takes locks on one Redis deployment. It is safe for concurrent use; one per process and deployment is
// enough.
type Client struct {
	opts     Options
	instance string
	waking   string // the command that notifies waiters of a release, for scripts
	clock    clock
	tails    tails
	db       evaler
	server   *transport.Server // nil for a Redlock client
	push     *push.Subscriber  // likewise
	batch    *transport.Batch  // likewise
	backend  backend.Backend   // of a Redlock client; else nil

	// ctx ends with Close; background work lives in wg.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	start  sync.Once

	beatUntil atomic.Pointer[instant] // when the heartbeat runs out; nil unless holds end with it
	heart     *heartbeat.Heartbeat
	waiters   push.Dispatcher
	reviews   atomic.Int32 // asked for and not ended
	observers atomic.Pointer[[]*func(Event)]

	mu     sync.Mutex
	closed bool
	begun  bool             // heartbeat and push were started
	holds  map[string]*hold // by acquisition id
}

// New returns a client that takes its locks where rdb points: a *redis.Client (failover clients too) or a
// *redis.ClusterClient. It opens connections of its own with the options of rdb, so that an application that
// exhausts its pool does not lose its locks; hooks and limiters of rdb do not apply to them. Keep a failover client
// open as long as the returned client: its Sentinel connection is shared. New sends nothing; errors are
// [ErrInvalid].
func New(rdb redis.UniversalClient, opts Options) (*Client, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, fmt.Errorf("new lock client: %w", err)
	}
	s, err := transport.Open(rdb, transport.Options{Timeout: opts.Timeout})
	if err != nil {
		return nil, fmt.Errorf("new lock client: %w: client: %w", ErrInvalid, err)
	}
	c := newClient(opts, s, newClock())
	c.server = s
	if s.Cluster() {
		c.waking = "SPUBLISH" // a plain message would go to every node
	}
	c.push = push.New(s, push.Callbacks{
		Spawn: c.spawn, Received: c.receive, Subscribed: c.subscribed,
		Failed: func(err error) { c.emit(Event{Kind: EventPushFailed, Err: err}) },
	})
	c.batch = transport.NewBatch(s, c.spawn)
	return c, nil
}

// NewWithBackend is for package redlock: it is exported because that package is not in this one, and nobody else
// can make a backend, which is of an internal package. The error joins invalid with what is wrong with opts.
func NewWithBackend(opts Options, invalid error, open func(backend.Host) backend.Backend) (*Client, error) {
	opts, err := opts.complete()
	if err := errors.Join(invalid, err); err != nil {
		return nil, err
	}
	c := newClient(opts, nil, newClock())
	c.backend = open(backend.Host{
		Timeout: opts.Timeout, Release: releaseScript, Spawn: c.spawn, Classify: classifyError,
		Cleaned: func(key, class, id string, took time.Duration, err error) {
			kind := EventCleaned
			if err != nil {
				kind = EventCleanFailed
			}
			c.emit(Event{Kind: kind, Key: key, Class: class, ID: id, Took: took, Err: err})
		},
	})
	c.db = c.backend
	return c, nil
}

func newClient(opts Options, db evaler, clk clock) *Client {
	c := &Client{
		opts: opts, instance: rand.Text(), waking: "PUBLISH", clock: clk, db: db, holds: map[string]*hold{},
		tails: tails{byLease: map[Lease]string{}},
	}
	c.heart = heartbeat.New(c.channel(), record.Instance{
		ID: c.instance, App: opts.App, Host: opts.Host, PID: os.Getpid(), Slot: opts.Slot,
	}, c.beat)
	c.observers.Store(&[]*func(Event){})
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Instance returns the id of this client in metadata and heartbeat.
func (c *Client) Instance() string { return c.instance }

// channel is the process's heartbeat key, and the channel on which it is notified.
func (c *Client) channel() string { return record.InstanceKey(c.opts.KeyPrefix, c.instance) }

// String names the client.
func (c *Client) String() string { return "lock client " + c.instance }

// GoString is String: %#v would read what is being written.
func (c *Client) GoString() string { return c.String() }

// Close ends the contexts of all handles that are still held, with a [LostError] that is [ErrClosed], and stops all
// background work; the locks stay until their TTL, so release before. It returns when everything has stopped.
func (c *Client) Close() error {
	c.mu.Lock()
	closed, begun := c.closed, c.begun
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	held := c.held()
	for _, h := range held {
		h.lose(ReasonClosed, nil)
	}
	c.cancel(ErrClosed)
	c.wg.Wait()
	if begun && len(held) == 0 {
		c.deleteHeartbeat()
	}
	return c.db.Close()
}

// enter registers background work; false once the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Add(1)
	}
	return !c.closed
}

// spawn runs f in the background until it returns or the client is closed.
func (c *Client) spawn(f func(ctx context.Context)) {
	if !c.enter() {
		return
	}
	go func() {
		defer c.wg.Done()
		f(c.ctx)
	}()
}

// begin starts what every process does that takes locks: heartbeat, and the channel on which it is notified of
// hand-offs and forced releases.
func (c *Client) begin() {
	c.start.Do(func() {
		c.mu.Lock()
		c.begun = true
		c.mu.Unlock()
		c.beaten(c.clock.now()) // as long as if it had been written now
		c.spawn(c.heart.Run)
		if c.push != nil {
			c.push.Listen(c.channel())
		}
	})
}

// add registers a hold, so that a forced release finds it; false once the client is closed.
func (c *Client) add(h *hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.holds[h.id] = h
	}
	return !c.closed
}

func (c *Client) remove(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holds, h.id)
}

// held returns the holds of the moment.
func (c *Client) held() []*hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.holds))
}

// receive handles a message on one of the process's channels.
func (c *Client) receive(message string) {
	m, _ := record.ParseMessage(message)
	switch m.Kind {
	case record.MessageHand, record.MessageTurn:
		c.waiters.Dispatch(m.ID, m)
	case record.MessageLost:
		c.mu.Lock()
		h := c.holds[m.ID]
		c.mu.Unlock()
		if h != nil {
			h.lose(ReasonForced, nil)
		}
	}
}

// subscribed is called when the process's own channel is subscribed to.
func (c *Client) subscribed(missed bool) {
	c.waiters.Wake()
	if missed {
		c.review()
	}
}

// roundTrip runs a script once, bounded by timeout.
func (c *Client) roundTrip(ctx context.Context, timeout time.Duration, s *transport.Script, keys []string, args []any) (any, error) {
	return c.db.Eval(transport.WithDeadline(ctx, time.Now().Add(timeout)), s, keys, args)
}

// beat writes the process's heartbeat once.
func (c *Client) beat(ctx context.Context, keys []string, args []any) (any, error) {
	sent := c.clock.now()
	reply, err := c.roundTrip(ctx, min(c.opts.Timeout, record.Heartbeat), heartbeat.Script, keys, args)
	switch {
	case err == nil:
		c.beaten(sent)
	case ctx.Err() == nil:
		_, failure := classifyError("heartbeat", keys[0], err)
		c.emit(Event{Kind: EventBeatFailed, Err: failure})
	}
	return reply, err
}

// beaten notes when the heartbeat runs out that was sent at sent, for the holds that end with it.
func (c *Client) beaten(sent instant) {
	if c.opts.EndWithHeartbeat {
		until := sent.add(record.HeartbeatTTL - drift(record.HeartbeatTTL))
		c.beatUntil.Store(&until)
	}
}

// deleteHeartbeat deletes the heartbeat of a process that holds no lock, so that nobody waits for it to come back. What
// goes wrong is left to the key's TTL.
func (c *Client) deleteHeartbeat() {
	ctx, cancel := context.WithTimeout(context.Background(), min(c.opts.Timeout, time.Second))
	defer cancel()
	if err := c.db.Delete(ctx, c.channel()); err != nil {
		c.emit(Event{Kind: EventBeatFailed, Err: err})
	}
}
