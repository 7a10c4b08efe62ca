package release

import (
	"context"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// What keeps too much from happening at once: caps bind everybody; freeze
// windows and the circuit breaker bind what needs no person, and warn people.

// capWindow is what the caps are for.
const capWindow = time.Hour

// tally is how many acts there were in the last hour.
type tally struct {
	all, auto int
	byClass   map[string]int
}

// tally counts the acts that were carried out, or may have been, from the store:
// the count is the same after a restart and in every replica.
func (s *Service) tally(ctx context.Context) (tally, error) {
	out := tally{byClass: map[string]int{}}
	list, err := s.store.ListActs(ctx, s.now().Add(-capWindow))
	if err != nil {
		return out, err
	}
	for _, r := range list {
		if r.Evidence.Act == locksteward.ActUndo || r.Evidence.Act == locksteward.ActLift {
			continue
		}
		out.all++
		out.byClass[r.Evidence.Class]++
		if automatic(r) {
			out.auto++
		}
	}
	return out, nil
}

// automatic says whether a request was decided without a person.
func automatic(r locksteward.Request) bool {
	yes, _ := lastWords(r)
	return len(yes) == 1 && yes[0] == AgentName
}

// capped refuses what would be more than the caps allow, n acts of the class.
func (t tally) capped(cfg Config, c class.Class, auto bool, n int) error {
	for _, limit := range []struct {
		now, most int
		what, key string
	}{
		{t.byClass[c.Name] + n, c.MaxPerHourOrDefault(), fmt.Sprintf("of class %q ", c.Name), "max_per_hour of the class"},
		{t.all + n, cfg.MaxPerHour, "", "release.max_per_hour"},
	} {
		if limit.now > limit.most {
			return refused("%d locks %swere released in the last hour or are being released, and at most %d may be; look why so many are stuck, then wait or raise %s",
				limit.now-n, limit.what, limit.most, limit.key)
		}
	}
	if auto && t.auto+n > cfg.AutoPerHour {
		return refused("%d locks were released without a person in the last hour, and at most %d may be (release.auto_per_hour); a person has to decide", t.auto, cfg.AutoPerHour)
	}
	return nil
}

// mayAct refuses a person's approval of so many requests where the caps do not
// allow them all.
func (s *Service) mayAct(ctx context.Context, list []locksteward.Request) error {
	now, err := s.tally(ctx)
	if err != nil {
		return err
	}
	cfg := s.settings.Load().cfg
	for _, r := range list {
		c, err := s.policy(r.Evidence.Class)
		if err != nil {
			continue // told where it is decided
		}
		if err := now.capped(cfg, c, false, 1); err != nil {
			return err
		}
		now.all++
		now.byClass[c.Name]++
	}
	return nil
}

// Warnings are what a person should know before they approve a request: what
// would keep the agent from deciding by itself.
func (s *Service) Warnings(r locksteward.Request) []string {
	var out []string
	at := s.now()
	if name := frozen(s.settings.Load().cfg.Freeze, at); name != "" {
		out = append(out, "There is a freeze: "+name+".")
	}
	if until := s.stops.frozenUntil(at); !until.IsZero() {
		out = append(out, "An admin froze releases until "+until.UTC().Format(time.RFC3339)+".")
	}
	if n := s.auto.open(r.Evidence.Target, at); n > 0 {
		out = append(out, fmt.Sprintf("Many locks of this target look dead at once (%d): the cause may be the network or the server, not the holders.", n))
	}
	e := r.Evidence
	if why := beyondSentence(e); why != "" {
		out = append(out, why)
	}
	if e.HolderAlive {
		out = append(out, "The holder is alive and may still be writing: after the release two work at once unless the resource is fenced.")
	}
	switch {
	case e.Identity == locksteward.IdentityNone || e.WeakIdentity() && e.HolderAlive: // whose expiry is not compared
		out = append(out, "This lock cannot be told from the next of its name: if it was released and taken again meanwhile, the new hold is deleted.")
	case e.WeakIdentity():
		out = append(out, "The identity of this lock is weak: its value is a constant or a name, which the next holder writes too, and only its expiry tells this hold from that one.")
	}
	return out
}

// mayActAlone refuses an act without a person.
func (s *Service) mayActAlone(ctx context.Context, r locksteward.Request, c class.Class) error {
	if err := s.stops.read(ctx); err != nil { // an admin may have frozen releases at another replica
		return err
	}
	if err := s.killed(); err != nil {
		return err
	}
	at := s.now()
	cfg := s.settings.Load().cfg
	if name := frozen(cfg.Freeze, at); name != "" {
		return refused("there is a freeze: %s", name)
	}
	if until := s.stops.frozenUntil(at); !until.IsZero() {
		return refused("an admin froze releases until %s", until.UTC().Format(time.RFC3339))
	}
	if n := s.auto.open(r.Evidence.Target, at); n > 0 {
		return refused("the circuit breaker is open: %d locks of target %q looked dead at once", n, r.Evidence.Target)
	}
	now, err := s.tally(ctx)
	if err != nil {
		return err
	}
	return now.capped(cfg, c, true, 1)
}
