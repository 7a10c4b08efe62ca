package scanner

import (
	"context"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/pace"
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
	s        *Scanner
	master   connect.Master
	classes  *class.Set
	pace     *pace.Server
	source   scanSource // whose keys are scanned, set after the handshake
	reader   *reader
	observe  observer
	traitSet traitSet
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
	master     connect.Master
	info       info
	answered   bool // the server answered at all
	err        error
	keys       int64
	at         time.Time // server time of the last look
	answeredAt time.Time // when it came, our clock

	locks []lockState
	// gone and noLock are known locks whose keys are not there any more, or are
	// no locks any more, with the server time of the look.
	gone, noLock map[string]time.Time

	losses    []locksteward.Loss
	instances map[string]*locksteward.Instance
	waiters   map[string]waiterSet
	// prefixes are those of keys beside locks, where they are not the usual one.
	prefixes map[string]string

	candidates     int
	candidateNames []string
}

// newPass prepares a pass over m, in which about expect locks are.
func newPass(s *Scanner, m connect.Master, classes *class.Set, r candidateQuota, expect int) *pass {
	p := &pass{
		s: s, master: m, classes: classes, pace: s.server(m.Addr), candidateQuota: r,
		observe:  observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}},
		traitSet: traitSet{},
		slots:    make(map[string]slot, expect),
		due:      map[*pace.Server]*upkeepDue{},
		counted:  map[uint64]struct{}{},
		out: passResult{
			master: m, locks: make([]lockState, 0, expect), gone: map[string]time.Time{}, noLock: map[string]time.Time{},
			instances: map[string]*locksteward.Instance{}, waiters: map[string]waiterSet{}, prefixes: map[string]string{},
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
	p.out.answered = text != ""
	i := parseInfo(text)
	p.out.info = i
	p.s.tracker.tell(i.keys(p.s.target.DB))
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
		p.out.answered = true
	}
	return nil
}

// farewell checks that the server is the one that it was: what another process
// answered in between is no pass.
func (p *pass) checkIdentity(ctx context.Context) error {
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
	return p.checkSource(ctx)
}
