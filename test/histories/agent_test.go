package histories_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// target is the name of the one target.
const target = "history"

// digestKey is the agent's; it lasts over restarts, as that in a store does.
var digestKey = locksteward.NewDigestKey()

// observer is the agent's side of a history: what internal/targets does with one
// target, one step at a time.
type observer struct {
	conn    *connect.Conn
	classes *class.Set
	clock   func() time.Time
	store   *memory
	// spoil changes a sweep before the rules see it, for the controls; nil leaves
	// it.
	spoil func(*locksteward.Sweep)
	// Other controls: forgetful restarts without histories, twice judges each sweep
	// two times, lazy never reads again.
	forgetful, twice, lazy bool

	scanner *scanner.Scanner
	engine  *rules.Engine
}

// start begins the agent's life, with what the last one stored.
func (o *observer) start() error {
	t := locksteward.Target{Name: target, Mode: o.conn.Mode(), DB: o.conn.DB()}
	src, err := redissource.New(o.conn, redissource.Options{
		Log: zap.NewNop(), Digest: digestKey, Config: redissource.Config{Watch: source.WatchOff}, Unpaced: true, Clock: o.clock,
	})
	if err != nil {
		return err
	}
	s, err := scanner.New(zap.NewNop(), t, src, o.classes, scanner.Config{NoThrottle: true}, scanner.Options{
		History: o.store, Facts: o.store, Clock: o.clock,
	})
	if err != nil {
		return err
	}
	engine, err := rules.New(nil, o.classes, formats.Facts)
	if err != nil {
		return err
	}
	if o.forgetful {
		clear(o.store.rows)
	}
	s.Restore(o.store.all())
	engine.Restore(o.store.findings)
	o.store.loaded = false
	o.scanner, o.engine = s, engine
	return nil
}

// sweep is one turn of scanner.Run with what internal/targets does with its sweep.
func (o *observer) sweep(ctx context.Context) (sweep locksteward.Sweep, dead map[string][]string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = o.scanner.Run(ctx, func(_ context.Context, s locksteward.Sweep) {
		sweep = s
		if o.spoil != nil {
			sweep = sweep.Collect()
			o.spoil(&sweep)
		}
		o.publish(o.engine.Evaluate(sweep))
		if o.twice {
			o.publish(o.engine.Evaluate(sweep))
		}
		dead = map[string][]string{}
		for l := range sweep.AllLocks() {
			if because := o.engine.DeadWhen(*l); len(because) > 0 {
				dead[l.Key] = because
			}
		}
		cancel()
	})
	return sweep, dead, err
}

// due are the locks that internal/targets reads again after the wait of the rules.
func (o *observer) due() []locksteward.Lock {
	var out []locksteward.Lock
	if o.lazy {
		return nil
	}
	for _, due := range o.engine.Due(target) {
		if l, ok := o.scanner.Table().Get(due.DB, due.Key); ok {
			out = append(out, l)
		}
	}
	return out
}

// recheck reads locks again, as internal/targets does.
func (o *observer) recheck(ctx context.Context, locks []locksteward.Lock) error {
	update, err := o.scanner.Recheck(ctx, locks)
	if err != nil {
		return err
	}
	if o.spoil != nil {
		as := locksteward.Sweep{At: update.At, Locks: update.Locks}
		o.spoil(&as)
		update.Locks = as.Locks
	}
	o.publish(o.engine.EvaluateDirect(update))
	return nil
}

// publish stores findings as internal/targets does.
func (o *observer) publish(transitions []locksteward.Transition) {
	all := o.engine.Findings()
	pending := func(f locksteward.Finding) bool { return f.Status == locksteward.StatusPending }
	if len(transitions) > 0 || slices.ContainsFunc(all, pending) {
		o.store.findings = all
	}
}

// memory is the store of an agent. It keeps what a crash would leave.
type memory struct {
	rows     map[string]scanner.HistoryRow
	facts    []string
	findings []locksteward.Finding
	loaded   bool // this life has its histories
}

func newMemory() *memory { return &memory{rows: map[string]scanner.HistoryRow{}} }

// SaveHistory implements scanner.HistoryStore.
func (m *memory) SaveHistory(_ context.Context, _ string, upserts []scanner.HistoryRow, gone []scanner.HistoryKey) error {
	for _, k := range gone {
		delete(m.rows, k.Key)
	}
	for _, row := range upserts {
		m.rows[row.Key] = row
	}
	return nil
}

// LoadHistory returns the rows once in each life: each sweep here is a Run of its
// own, and Run begins by loading them.
func (m *memory) LoadHistory(context.Context, string) ([]scanner.HistoryRow, error) {
	if m.loaded {
		return nil, nil
	}
	m.loaded = true
	return m.all(), nil
}

func (m *memory) all() []scanner.HistoryRow { return slices.Collect(maps.Values(m.rows)) }

// SaveFacts implements scanner.FactStore.
func (m *memory) SaveFacts(_ context.Context, _, facts string) error {
	m.facts = append(m.facts, facts)
	return nil
}

// LoadFacts implements scanner.FactStore.
func (m *memory) LoadFacts(context.Context, string) (string, error) {
	if len(m.facts) == 0 {
		return "", nil
	}
	return m.facts[len(m.facts)-1], nil
}

// crash takes back the last n savings of facts: Run saves them when it ends, which
// a program that is killed does not.
func (m *memory) crash(n int) { m.facts = m.facts[:max(0, len(m.facts)-n)] }

var (
	_ scanner.HistoryStore = (*memory)(nil)
	_ scanner.FactStore    = (*memory)(nil)
)
