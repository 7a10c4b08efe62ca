package scanner

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/respcheck"
)

const (
	// unpacedCount is COUNT of SCAN without a pace: one call then keeps a server for about 0.5 ms.
	unpacedCount = 1000
	memoryLimit  = 0.95
	memoryEvery  = 10 * time.Second
)

// pass is one master's part of a sweep. It is used by one goroutine, but for
// the pages and inspections that an unthrottled pass does ahead.
type pass struct {
	s       *Scanner
	master  connect.Master
	classes *class.Set
	pace    *pace.Server
	walk    walk // whose keys are walked, after greet
	reader  *reader
	observe observer
	shapes  shapes
	// ration says which unknown candidates are looked at, see there.
	ration  ration
	due     map[*pace.Server]*upkeepDue
	counted map[uint64]struct{} // hashes of candidates' names
	tried   int                 // unknown candidates looked into

	ahead  <-chan looked // the inspection under way, nil if none
	looked time.Time     // when it began
	todo   []subject
	// todoSince is when the first of todo was met.
	todoSince time.Time
	slots     map[string]slot // of every key that is looked at
	extras    companions
	flush     flushWindow
	// stood is how many holds were found that stood on another process's data.
	stood int

	out passResult
}

// slot is how far a key has come in this pass.
type slot struct {
	// meta says that metadata is looked for too.
	meta bool
	// at is where its look is in passResult.locks, negative while there is none.
	at int32
}

// passResult is what a pass found.
type passResult struct {
	master  connect.Master
	info    info
	greeted bool // the server answered at all
	err     error
	keys    int64
	at      time.Time // server time of the last look
	told    time.Time // when it came, our clock

	locks []look
	// gone and noLock are known locks whose keys are not there any more, or are
	// no locks any more, with the server time of the look.
	gone, noLock map[string]time.Time

	losses    []locksteward.Loss
	instances map[string]*locksteward.Instance
	waiters   map[string]crowd
	// prefixes are those of keys beside locks, where they are not the usual one.
	prefixes map[string]string

	candidates     int
	candidateNames []string
}

// newPass prepares a pass over m, in which about expect locks are.
func newPass(s *Scanner, m connect.Master, classes *class.Set, r ration, expect int) *pass {
	p := &pass{
		s: s, master: m, classes: classes, pace: s.server(m.Addr), ration: r,
		observe: observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}},
		shapes:  shapes{},
		slots:   make(map[string]slot, expect),
		due:     map[*pace.Server]*upkeepDue{},
		counted: map[uint64]struct{}{},
		out: passResult{
			master: m, locks: make([]look, 0, expect), gone: map[string]time.Time{}, noLock: map[string]time.Time{},
			instances: map[string]*locksteward.Instance{}, waiters: map[string]crowd{}, prefixes: map[string]string{},
		},
	}
	p.reader = &reader{client: m.Client, node: m.Addr, table: s.table, caps: s.caps, prefixes: s.prefixes, call: p.call}
	return p
}

// Errors that end a pass.
var (
	errReplica   = errors.New("the server is a replica")
	errLoading   = errors.New("the server is loading its data")
	errRestarted = errors.New("the server was restarted or replaced during the pass")
	errDemoted   = errors.New("the server became a replica during the pass")
)

// run makes the pass. What it found before an error counts too.
func (p *pass) run(ctx context.Context) {
	err := p.sweep(ctx)
	if collectErr := p.collect(ctx); err == nil {
		err = collectErr
	}
	p.out.err = err
}

func (p *pass) sweep(ctx context.Context) error {
	p.pace.Mark()
	if err := p.greet(ctx); err != nil {
		return err
	}
	if err := p.chooseWalk(ctx); err != nil {
		return err
	}
	if err := p.scan(ctx); err != nil {
		return err
	}
	if err := p.lookNow(ctx); err != nil {
		return err
	}
	p.todo = nil
	if err := p.collect(ctx); err != nil {
		return err
	}
	if err := p.readExtras(ctx); err != nil {
		return err
	}
	return p.farewell(ctx)
}

// greet asks the server who it is, and times some trivial commands.
func (p *pass) greet(ctx context.Context) error {
	text, err := p.askInfo(ctx)
	if err != nil {
		return err
	}
	p.out.greeted = text != ""
	i := parseInfo(text)
	p.out.info = i
	p.s.going.tell(i.keys(p.s.target.DB))
	p.memoryOf(p.pace, i)
	major, _ := i.version()
	p.reader.noExpireTime = major > 0 && major < 7
	p.reader.noIdle = i.lfu()
	switch {
	case i.loading():
		return errLoading
	case i.replica():
		return errReplica
	}
	for range 3 {
		if err := p.probe(ctx, p.pace, p.master.Client); err != nil {
			return err
		}
		p.out.greeted = true
	}
	return nil
}

// askInfo asks the master; it returns "" where that does not let us ask, which is not
// tried again for a while.
func (p *pass) askInfo(ctx context.Context, sections ...string) (string, error) {
	return p.askInfoAt(ctx, p.pace, p.master.Client, sections...)
}

func (p *pass) askInfoAt(ctx context.Context, server *pace.Server, client *redis.Client, sections ...string) (string, error) {
	if !p.s.caps.has("info") {
		return "", nil
	}
	var text string
	err := p.callAt(ctx, server, 1, func() (err error) {
		text, err = client.Info(ctx, sections...).Result()
		return err
	})
	switch {
	case err == nil:
		p.s.caps.allow("info")
		return text, notLong(text, client.Options().Addr)
	case judge(err) == without:
		p.s.caps.refuse("info")
		return "", nil
	default:
		return "", fmt.Errorf("ask for info: %w", err)
	}
}

// farewell checks that the server is the one that it was: what another process
// answered in between is no pass.
func (p *pass) farewell(ctx context.Context) error {
	if p.out.info["run_id"] == "" {
		return nil
	}
	server, err := p.askInfo(ctx, "server")
	if err != nil {
		return err
	}
	replication, err := p.askInfo(ctx, "replication")
	if err != nil {
		return err
	}
	switch {
	case parseInfo(server)["run_id"] != p.out.info["run_id"]:
		return errRestarted
	case parseInfo(replication).replica():
		return errDemoted
	}
	return p.walkEnds(ctx)
}

// scan walks the keyspace and looks at what may be a lock.
func (p *pass) scan(ctx context.Context) error {
	if p.s.cfg.NoThrottle {
		return p.scanAhead(ctx)
	}
	return p.pages(ctx, func(keys []string) error { return p.consume(ctx, keys) })
}

// scanAhead reads pages while others are looked at: without a budget the server
// should never wait for us.
func (p *pass) scanAhead(ctx context.Context) error {
	scanning, stop := context.WithCancel(ctx)
	defer stop()
	pages := make(chan []string, 4)
	done := make(chan error, 1)
	go func() {
		defer close(pages)
		done <- p.pages(scanning, func(keys []string) error {
			select {
			case pages <- keys:
				return nil
			case <-scanning.Done():
				return scanning.Err()
			}
		})
	}()
	var err error
	for keys := range pages {
		if err == nil {
			if err = p.consume(ctx, keys); err != nil {
				stop()
			}
		}
	}
	if scanErr := <-done; err == nil {
		err = scanErr
	}
	return err
}

// pages calls yield with each page of SCAN until the cursor is back at 0. An
// empty page with a cursor is no end.
func (p *pass) pages(ctx context.Context, yield func([]string) error) error {
	end := newScanEnd(p)
	for cursor := uint64(0); ; {
		keys, next, err := p.page(ctx, cursor)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if err := end.page(ctx, len(keys)); err != nil {
			return err
		}
		if cursor == 0 {
			p.s.answers(p)
		}
		p.out.keys += int64(len(keys))
		p.s.scanned.Add(int64(len(keys)))
		if err := yield(keys); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

func (p *pass) page(ctx context.Context, cursor uint64) (keys []string, next uint64, err error) {
	count := unpacedCount
	if !p.s.cfg.NoThrottle {
		if err := p.upkeep(ctx, p.pace, p.master.Client); err != nil {
			return nil, 0, err
		}
		if p.walk.replica != nil {
			if err := p.upkeep(ctx, p.walk.pace, p.walk.client); err != nil {
				return nil, 0, err
			}
		}
		count = p.walk.pace.Count()
	}
	err = p.s.paced(ctx, p.walk.pace, func() error {
		began := time.Now()
		keys, next, err = p.walk.client.Scan(ctx, cursor, "", int64(count)).Result()
		now := time.Now()
		p.walk.pace.Scanned(now, count, now.Sub(began))
		return err
	})
	return p.readable(keys), next, err
}

// readable leaves out names that are too long to be read.
func (p *pass) readable(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, long := respcheck.Long(name)
		if long {
			p.s.caps.tooLong()
		}
		return long
	})
}

// upkeep keeps the pace of a server informed: its processor time, a round trip, and its memory now and then.
func (p *pass) upkeep(ctx context.Context, server *pace.Server, client *redis.Client) error {
	now := time.Now()
	due := p.due[server]
	if due == nil {
		due = new(upkeepDue)
		p.due[server] = due
	}
	if now.Sub(due.memory) >= memoryEvery {
		due.memory = now
		text, err := p.askInfoAt(ctx, server, client, "memory")
		if err != nil {
			return err
		}
		p.memoryOf(server, parseInfo(text))
	}
	if now.Sub(due.sample) >= pace.SampleEvery {
		due.sample = now
		text, err := p.askInfoAt(ctx, server, client, "cpu")
		if err != nil {
			return err
		}
		server.Sample(time.Now(), parseInfo(text).counters(p.out.info.flag("io_threads_active")))
	}
	if now.Sub(due.probe) >= pace.ProbeEvery {
		due.probe = now
		return p.probe(ctx, server, client)
	}
	return nil
}

// upkeepDue is when a server was last asked what its pace goes by.
type upkeepDue struct {
	memory, sample, probe time.Time
}

func (p *pass) memoryOf(server *pace.Server, i info) {
	limit := i.integer("maxmemory")
	server.NearlyFull(limit > 0 && float64(i.integer("used_memory")) > memoryLimit*float64(limit))
}

func (p *pass) probe(ctx context.Context, server *pace.Server, client *redis.Client) error {
	return p.s.paced(ctx, server, func() error {
		waited, began := runDelays(), time.Now()
		if err := client.Ping(ctx).Err(); err != nil && judge(err) != without && !noWrites(err) {
			return err
		}
		now := time.Now()
		server.Probed(now, now.Sub(began), runDelay(waited, runDelays()))
		return nil
	})
}

// call is how the pass's reader reaches the master.
func (p *pass) call(ctx context.Context, n int, pipeline func() error) error {
	return p.callAt(ctx, p.pace, n, pipeline)
}

func (p *pass) callAt(ctx context.Context, server *pace.Server, n int, pipeline func() error) error {
	return p.s.paced(ctx, server, func() error {
		began := time.Now()
		err := pipeline()
		now := time.Now()
		server.Piped(now, n, now.Sub(began))
		return err
	})
}

// verify looks directly at known locks that the scan did not meet: SCAN may
// miss what was written while it ran.
func (p *pass) verify(ctx context.Context, missing []subject) error {
	for chunk := range slices.Chunk(missing, subjectsPerLook) {
		if err := p.inspect(ctx, chunk); err != nil {
			return err
		}
	}
	return p.collect(ctx)
}

// consume takes one page of key names.
func (p *pass) consume(ctx context.Context, keys []string) error {
	for _, key := range keys {
		p.route(key)
		if len(p.todo) >= subjectsPerLook {
			if err := p.lookNow(ctx); err != nil {
				return err
			}
		}
	}
	return p.lookSoon(ctx)
}

// lookNow looks at all keys that wait for it.
func (p *pass) lookNow(ctx context.Context) error {
	todo := p.todo
	p.todo = p.todo[:0]
	return p.inspect(ctx, todo)
}

// hashOf returns a name's hash.
func (s *Scanner) hashOf(name string) uint64 { return maphash.String(s.seed, name) }
