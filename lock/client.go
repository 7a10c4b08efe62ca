package lock

import (
	"context"
	"crypto/rand"
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
	"github.com/locksteward/locksteward/lock/internal/push"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// Client takes locks on one Redis deployment. It is safe for concurrent use;
// one per process and deployment is enough.
type Client struct {
	opts     Options
	instance string
	waking   string // the command that tells waiters of a release, for scripts
	pid      int
	info     holderInfo
	clock    clock
	counts   counts
	db       evaler
	server   *transport.Server // nil where db is a test's, or backend
	backend  backend.Backend   // of a Redlock client; else nil
	push     *push.Subscriber  // nil without server
	batch    *transport.Batch  // likewise

	// ctx ends with Close; background work lives in wg.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	start  sync.Once

	// beatUntil is when the heartbeat runs out; nil unless holds end with it.
	beatUntil atomic.Pointer[instant]
	beatTimer *time.Timer // looks at all holds then; nil likewise
	waiters   push.Dispatcher
	reviews   atomic.Int32 // asked for and not ended
	observers atomic.Pointer[[]*func(Event)]

	mu     sync.Mutex
	closed bool
	begun  bool             // heartbeat and push were started
	holds  map[string]*hold // by acquisition id
}

// New returns a client that takes its locks where rdb points: a *redis.Client
// (failover clients too) or a *redis.ClusterClient. It opens connections of its
// own with the options of rdb, so that an application that exhausts its pool
// does not lose its locks; hooks and limiters of rdb do not apply to them. Keep
// a failover client open as long as the returned client: its Sentinel
// connection is shared. New sends nothing; errors are [ErrInvalid].
func New(rdb redis.UniversalClient, opts Options) (*Client, error) {
	size, err := poolSize(rdb)
	if err != nil {
		return nil, fmt.Errorf("new lock client: %w", err)
	}
	if opts, err = opts.complete(size); err != nil {
		return nil, fmt.Errorf("new lock client: %w", err)
	}
	s := transport.Open(rdb, transport.Options{Timeout: opts.Timeout, PoolSize: opts.PoolSize})
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

// NewWithBackend returns a client for package redlock; nobody else can make a backend.
// The error joins invalid with what is wrong with opts. poolSize is the default of
// Options.PoolSize.
func NewWithBackend(opts Options, poolSize int, invalid error, open func(backend.Host) backend.Backend) (*Client, error) {
	opts, err := opts.complete(poolSize)
	if err := errors.Join(invalid, err); err != nil {
		return nil, err
	}
	c := newClient(opts, nil, newClock())
	c.backend = open(backend.Host{
		Timeout: opts.Timeout, PoolSize: opts.PoolSize, Release: releaseScript, Spawn: c.spawn, Classify: classifyError,
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
		opts:     opts,
		instance: rand.Text(),
		pid:      os.Getpid(),
		clock:    clk,
		db:       db,
		holds:    map[string]*hold{},
	}
	c.info.c = c
	c.waking = "PUBLISH"
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Instance returns the id of this client in metadata and heartbeat.
func (c *Client) Instance() string { return c.instance }

// String names the client.
func (c *Client) String() string { return "lock client " + c.instance }

// GoString names the client under %#v too, which would read what is being
// written.
func (c *Client) GoString() string { return c.String() }

// Close ends the contexts of all handles that are still held, with a
// [LostError] that is [ErrClosed], and stops all background work; the locks stay
// until their TTL, so release before. It returns when everything has stopped.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	begun := c.begun
	held := make([]*hold, 0, len(c.holds))
	for _, h := range c.holds {
		held = append(held, h)
	}
	c.mu.Unlock()

	for _, h := range held {
		h.lose(ReasonClosed, nil)
	}
	c.cancel(ErrClosed)
	c.wg.Wait()
	if c.beatTimer != nil {
		c.beatTimer.Stop()
	}
	if begun && len(held) == 0 {
		c.farewell()
	}
	switch {
	case c.server != nil:
		return c.server.Close()
	case c.backend != nil:
		return c.backend.Close()
	default:
		return nil
	}
}

// enter registers background work; false once the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Add(1)
	return true
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

// begin starts what every process does that takes locks: heartbeat, and the
// channel on which it is told of forced releases.
func (c *Client) begin() {
	c.start.Do(func() {
		if c.server == nil && c.backend == nil {
			return
		}
		c.mu.Lock()
		c.begun = true
		c.mu.Unlock()
		if c.opts.EndWithHeartbeat {
			c.beatTimer = time.AfterFunc(record.HeartbeatTTL, c.lookAll)
			c.beaten(c.clock.now()) // as long as if it had been written now
		}
		c.spawn(c.beat)
		if c.push != nil {
			c.push.Listen(record.InstanceKey(c.opts.KeyPrefix, c.instance))
		}
	})
}

// add registers a hold, so that a forced release finds it.
func (c *Client) add(h *hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.holds[h.id] = h
	return true
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
	if g, ok := record.ParseGrantMessage(message); ok {
		c.waiters.Dispatch(g.ID, push.Message{Grant: g})
		return
	}
	if id, before, ok := record.ParseTurnMessage(message); ok {
		c.waiters.Dispatch(id, push.Message{Before: before})
		return
	}
	id, ok := record.ParseLostMessage(message)
	if !ok {
		return
	}
	c.mu.Lock()
	h := c.holds[id]
	c.mu.Unlock()
	if h != nil {
		h.lose(ReasonForced, nil)
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
