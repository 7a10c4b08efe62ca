package redis

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Waits of a server that runs a script for long.
const (
	busyFirst = 100 * time.Millisecond
	busyMost  = time.Second
	busyLimit = 30 * time.Second
)

// Source reads one Redis target. See [New].
type Source struct {
	log      *zap.Logger
	conn     *connect.Conn
	digest   locksteward.DigestKey
	cfg      Config
	pace     pace.Config
	unpaced  bool
	prefixes []string
	hosts    *pace.Hosts
	clock    func() time.Time
	// placeholder is Options.Placeholder.
	placeholder func(key, requestID string) bool
	seed        maphash.Seed
	caps        *caps

	// Set by Bind.
	host     source.Host
	target   locksteward.Target
	throttle *source.Throttle
	watch    *watcher

	classes  atomic.Pointer[class.Set]
	lastSeen map[string]int // candidates of the last pass, by address; of Sweep

	mu      sync.Mutex
	servers map[string]*pace.Server // by address; mu guards it
}

// Options are the options of [New].
type Options struct {
	Log    *zap.Logger
	Digest locksteward.DigestKey
	Config Config
	// Pace bounds the share of a server's time that sweeps may take. Unpaced sweeps as fast as
	// the server answers.
	Pace    pace.Config
	Unpaced bool
	// Hosts are the machines whose servers share an allowance, with other targets; nil for the target's alone.
	Hosts *pace.Hosts
	// Placeholder reports whether the release request of that id is known to have put a
	// placeholder in a lock's place, so that the key is no lock. Nil knows none: then
	// each placeholder is a lock, shown as unverified. It is called by many goroutines
	// and must return soon.
	Placeholder func(key, requestID string) bool
	// Clock is the agent's clock; nil is time.Now. The pace and the watch go by the true clock
	// all the same.
	Clock func() time.Time
}

// New returns the source of a target over conn, which stays the caller's. It does no I/O.
func New(conn *connect.Conn, opts Options) (*Source, error) {
	if err := opts.Config.Validate(); err != nil {
		return nil, err
	}
	cfg := opts.Config.WithDefaults()
	s := &Source{
		log: opts.Log, conn: conn, digest: opts.Digest, cfg: cfg, pace: opts.Pace.WithDefaults(), unpaced: opts.Unpaced,
		prefixes: cfg.prefixes(), hosts: opts.Hosts, clock: opts.Clock, placeholder: opts.Placeholder, seed: maphash.MakeSeed(),
		caps: newCaps(), lastSeen: map[string]int{}, servers: map[string]*pace.Server{},
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.hosts == nil {
		s.hosts = new(pace.Hosts)
	}
	return s, nil
}

// Bind implements [source.Source].
func (s *Source) Bind(host source.Host) {
	s.host, s.target, s.throttle = host, host.Target(), host.Throttle()
	s.log = s.log.Named("scanner").With(zap.String("target", s.target.Name))
	s.watch = newWatcher(s)
}

// Traits implements [source.Source].
func (*Source) Traits() source.Traits {
	return source.Traits{
		Lifetimes: []locksteward.Lifetime{locksteward.LifetimeLease, locksteward.LifetimePersistent},
		// Servers before 7.0 do not tell PEXPIRETIME: TIME and PTTL are added.
		ExpiryTolerance: 50 * time.Millisecond,
		Watch:           true, Waiters: true, Fences: true, Heartbeats: true, ServerFacts: true,
	}
}

// Topology implements [source.Source].
func (s *Source) Topology() locksteward.Mode { return s.conn.Mode() }

// DB implements [source.Source].
func (s *Source) DB() int { return s.conn.DB() }

// SetClasses implements [source.Source].
func (s *Source) SetClasses(classes *class.Set) {
	s.classes.Store(classes)
	s.watch.setClasses(classes)
}

// Renewed implements [source.Source].
func (s *Source) Renewed() <-chan struct{} { return s.conn.Renewed() }

// Ready implements [source.Source].
func (s *Source) Ready(at time.Time) time.Duration {
	if s.unpaced {
		return 0
	}
	var late time.Duration
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		late = max(late, server.Ready(at))
	}
	return late
}

// Stats implements [source.Source].
func (s *Source) Stats() source.Stats {
	stats := source.Stats{Pace: map[string]pace.State{}}
	if !s.unpaced {
		s.mu.Lock()
		for addr, server := range s.servers {
			stats.Pace[addr] = server.Latest(time.Now())
		}
		s.mu.Unlock()
	}
	stats.Degraded, stats.Refused, stats.Forbidden, stats.Long = s.caps.notes()
	return stats
}

// server returns the pace of a server, which keeps what it learned.
func (s *Source) server(addr string) *pace.Server {
	s.mu.Lock() // passes that choose a replica ask side by side
	defer s.mu.Unlock()
	p, ok := s.servers[addr]
	if !ok {
		p = s.hosts.At(addr).Server(s.pace)
		s.servers[addr] = p
	}
	return p
}

// paced calls f when the pace of a server allows, and again while it is busy with
// a script. f books what it took.
func (s *Source) paced(ctx context.Context, server *pace.Server, f func() error) error {
	wait, waited := busyFirst, time.Duration(0)
	for {
		if err := s.allowed(ctx, server); err != nil {
			return err
		}
		s.host.Alive()
		err := f()
		s.host.Alive()
		if !isBusy(err) || waited >= busyLimit {
			return err
		}
		if pauseErr := s.throttle.Sleep(ctx, source.ReasonBusy, wait); pauseErr != nil {
			return errors.Join(pauseErr, err)
		}
		waited += wait
		wait = min(2*wait, busyMost)
	}
}

// allowed returns when a server may be asked something, or with ctx's error.
func (s *Source) allowed(ctx context.Context, server *pace.Server) error {
	if s.unpaced {
		return s.throttle.Pass(ctx)
	}
	return s.throttle.Wait(ctx, server)
}

// book books a call to the server at addr that no sweep made and that waited for no pace.
func (s *Source) book(addr string, took time.Duration) {
	s.server(addr).Spend(time.Now(), took)
}

func isBusy(err error) bool { return redis.HasErrorPrefix(err, "BUSY ") }

// remember returns what is known of key.
func (s *Source) remember(key string) memory {
	k, ok := s.host.Lookup(key)
	if !ok {
		return memory{}
	}
	return memoryOf(k)
}

func memoryOf(k source.Known) memory {
	return memory{known: true, ours: k.Library == formats.Locksteward, typ: k.Type, last: k, seen: true}
}

// Explain implements [source.Source].
func (*Source) Explain(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errReplica):
		return "the server is a replica; point the target at the master"
	case errors.Is(err, source.ErrLoading):
		return "the server is loading its data; wait until it is done"
	case errors.Is(err, source.ErrStalled):
		return "no server answered the sweep within its timeout; check the server and the network, or raise timeout"
	}
	if errors.Is(err, errEndless) {
		return err.Error() + "; look what answers there: Redis does not"
	}
	for _, own := range []error{errRestarted, errDemoted, errMoved, errTopology, errResynced} {
		if errors.Is(err, own) {
			return own.Error() + "; the next sweep repeats it"
		}
	}
	return connect.Explain(err)
}
