package redis

import (
	"context"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
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
	s        *Source
	master   connect.Master
	classes  *class.Set
	pace     *pace.Server
	source   scanSource // whose keys are scanned, set after the handshake
	reader   *reader
	found    []source.Reading // of the last batch; its memory is used again
	observe  observer
	progress progress
	// candidateQuota says which unknown candidates are looked at, see there.
	candidateQuota candidateQuota
	due            map[*pace.Server]*upkeepDue
	counted        map[uint64]struct{} // hashes of candidates' names
	tried          int                 // unknown candidates looked into

	ahead       <-chan inspected // the inspection under way, nil if none
	inspectedAt time.Time        // when it began
	todo        []subject
	// todoSince is when the first of todo was met.
	todoSince time.Time
	slots     map[string]slot // of every key that is looked at
	extras    auxiliaryKeys
	locks     int32               // found so far
	holders   map[string]struct{} // processes that they name
	// prefixes are those of keys beside locks, where they are not the usual one.
	prefixes map[string]string
	info     info
	flushes  int64 // so far; negative: not known

	out source.Part
}

// slot is how far a key has come in this pass.
type slot struct {
	// meta says that metadata is looked for too.
	meta bool
	// at is the number of its lock ([source.Reading.Number]), negative without one.
	at int32
}

// progress is where a pass reports while it is under way.
type progress struct {
	sink  source.Sink
	part  int
	early bool
}

// newPass prepares a pass over m, in which about expect locks are.
func newPass(s *Source, m connect.Master, classes *class.Set, r candidateQuota, expect int, to progress) *pass {
	p := &pass{
		s: s, master: m, classes: classes, pace: s.server(m.Addr), candidateQuota: r, progress: to,
		observe: observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}},
		slots:   make(map[string]slot, expect),
		due:     map[*pace.Server]*upkeepDue{},
		counted: map[uint64]struct{}{}, prefixes: map[string]string{}, holders: map[string]struct{}{},
		out: source.Part{
			Node: m.Addr, Owns: m.Owns, Absent: map[string]time.Time{}, NotLock: map[string]time.Time{},
			Instances: map[string]*locksteward.Instance{}, Waiters: map[string]source.WaiterSet{},
		},
	}
	p.reader = &reader{client: m.Client, node: m.Addr, clockRead: s.host.ClockRead, caps: s.caps, prefixes: s.prefixes, call: p.call}
	return p
}

// Errors that end a pass.
var (
	errReplica   = errors.New("the server is a replica")
	errRestarted = errors.New("the server was restarted or replaced during the pass")
	errDemoted   = errors.New("the server became a replica during the pass")
)

// run makes the pass. What it found before an error counts too.
func (p *pass) run(ctx context.Context) {
	err := p.sweep(ctx)
	if collectErr := p.collect(ctx); err == nil {
		err = collectErr
	}
	p.out.Err = err
}

func (p *pass) sweep(ctx context.Context) error {
	p.pace.Mark()
	if err := p.handshake(ctx); err != nil {
		return err
	}
	if err := p.chooseSource(ctx); err != nil {
		return err
	}
	if err := p.scan(ctx); err != nil {
		return err
	}
	if err := p.readTodo(ctx); err != nil {
		return err
	}
	p.todo = nil
	if err := p.collect(ctx); err != nil {
		return err
	}
	if err := p.readExtras(ctx); err != nil {
		return err
	}
	return p.checkIdentity(ctx)
}

// handshake asks the server who it is, and times some trivial commands.
func (p *pass) handshake(ctx context.Context) error {
	text, err := p.askInfo(ctx)
	if err != nil {
		return err
	}
	p.out.Answered = text != ""
	i := parseInfo(text)
	p.info = i
	p.progress.sink.Total(p.progress.part, i.keys(p.s.target.DB))
	p.memoryOf(p.pace, i)
	major, _ := i.version()
	p.reader.noExpireTime = major > 0 && major < 7
	p.reader.noIdle = i.lfu()
	switch {
	case i.loading():
		return source.ErrLoading
	case i.replica():
		return errReplica
	}
	for range 3 {
		if err := p.probe(ctx, p.pace, p.master.Client); err != nil {
			return err
		}
		p.out.Answered = true
	}
	return nil
}

// checkIdentity checks that the server is the one that it was: what another process
// answered in between is no pass.
func (p *pass) checkIdentity(ctx context.Context) error {
	if p.info["run_id"] == "" {
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
	case parseInfo(server)["run_id"] != p.info["run_id"]:
		return errRestarted
	case parseInfo(replication).replica():
		return errDemoted
	}
	return p.checkSource(ctx)
}
