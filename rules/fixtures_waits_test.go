package rules

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// fixtureWaits are the facts of the rules about waiting, with all times as "ago".
type fixtureWaits struct {
	Waiters   []fixtureWaiter   `yaml:"waiters"`
	Cycle     *fixtureCycle     `yaml:"cycle"`
	Inversion *fixtureInversion `yaml:"inversion"`
	Activity  *fixtureActivity  `yaml:"activity"`
}

type fixtureWaiter struct {
	Key      string         `yaml:"key"`
	Target   string         `yaml:"target"`
	ID       string         `yaml:"id"`
	Session  string         `yaml:"session"`
	Instance string         `yaml:"instance"`
	Since    *time.Duration `yaml:"since"`
}

type fixtureCycle struct {
	Members []fixtureMember `yaml:"members"`
	Victim  int             `yaml:"victim"`
	Proven  bool            `yaml:"proven"`
}

type fixtureMember struct {
	Session  string         `yaml:"session"`
	Holds    string         `yaml:"holds"`
	Target   string         `yaml:"target"`
	Holder   fixtureHolder  `yaml:"holder"`
	Acquired *time.Duration `yaml:"acquired"`
	Purpose  string         `yaml:"purpose"`
	Inferred bool           `yaml:"inferred"`
	Calls    int            `yaml:"calls"`
	Waits    fixtureWaiter  `yaml:"waits"`
}

type fixtureInversion struct {
	There fixtureOrder `yaml:"there"`
	Back  fixtureOrder `yaml:"back"`
	Gates []string     `yaml:"gates"`
}

type fixtureOrder struct {
	First    string         `yaml:"first"`
	Then     string         `yaml:"then"`
	FirstKey string         `yaml:"first_key"`
	ThenKey  string         `yaml:"then_key"`
	At       *time.Duration `yaml:"at"`
	Session  string         `yaml:"session"`
	Holder   fixtureHolder  `yaml:"holder"`
}

type fixtureActivity struct {
	Since     *time.Duration `yaml:"since"`
	Processes int            `yaml:"processes"`
	Acquired  int64          `yaml:"acquired"`
	Failed    int64          `yaml:"failed"`
	Contended int64          `yaml:"contended"`
}

func (f fixtureWaiter) waiter(now time.Time) locksteward.Waiter {
	target := f.Target
	if target == "" {
		target = "redis"
	}
	return locksteward.Waiter{
		Target: target, Key: f.Key, Class: class.Default, ID: f.ID, Session: f.Session, Instance: f.Instance, Since: ago(now, f.Since),
	}
}

func (f fixtureOrder) order(now time.Time) Order {
	return Order{
		First: f.First, Then: f.Then, FirstKey: f.FirstKey, ThenKey: f.ThenKey,
		At: ago(now, f.At), Session: f.Session, Holder: f.Holder.holder(),
	}
}

// into puts the facts into the input of a rule.
func (f fixtureWaits) into(in *Input) {
	for _, w := range f.Waiters {
		in.Waiters = append(in.Waiters, w.waiter(in.Now))
	}
	if f.Cycle != nil {
		in.Cycle = &Cycle{Victim: f.Cycle.Victim, Proven: f.Cycle.Proven}
		for _, m := range f.Cycle.Members {
			waits := m.Waits.waiter(in.Now)
			target := m.Target
			if target == "" {
				target = "redis"
			}
			in.Cycle.Members = append(in.Cycle.Members, CycleMember{
				Session: m.Session, Waits: waits, Target: target, Holds: m.Holds, HeldClass: class.Default,
				Acquired: ago(in.Now, m.Acquired), Purpose: m.Purpose, Holder: m.Holder.holder(), Inferred: m.Inferred, Calls: m.Calls,
			})
		}
	}
	if f.Inversion != nil {
		in.Inversion = &Inversion{There: f.Inversion.There.order(in.Now), Back: f.Inversion.Back.order(in.Now), Gates: f.Inversion.Gates}
	}
	if a := f.Activity; a != nil {
		in.Activity = &Activity{Since: ago(in.Now, a.Since), Processes: a.Processes, Acquired: a.Acquired, Failed: a.Failed, Contended: a.Contended}
	}
}
