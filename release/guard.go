package release

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// What keeps too much from happening at once: caps bind everybody; pause
// windows and the circuit breaker bind what needs no person, and warn people.

// capWindow is what the caps are for.
const capWindow = time.Hour

// reserve refuses what the caps do not allow for requests of which the approval is being
// decided. They have their places with the transaction that writes it: what is approved
// or being carried out counts, and what was carried out, or may have been, in the last
// hour. So the count is the same after a restart and in every replica, also while one of
// them is between approval, intent and outcome; and a request that turns out to have
// released nothing gives its place back by its state.
func (s *Service) reserve(others acts, auto bool, asked ...locksteward.Request) error {
	at := s.now()
	list, err := others(at.Add(-capWindow))
	if err != nil {
		return err
	}
	cfg := s.settings.Load().cfg
	perClass := map[string]int{}
	for _, r := range asked {
		perClass[r.Evidence.Class]++
	}
	var caps []limit
	for _, name := range slices.Sorted(maps.Keys(perClass)) {
		c, err := s.policy(name)
		if err != nil {
			return err
		}
		caps = append(caps, limit{
			c.MaxPerHourOrDefault(), perClass[name], fmt.Sprintf("locks of class %q", name), "max_per_hour of the class",
			func(r locksteward.Request) bool { return r.Evidence.Class == name },
		})
	}
	caps = append(caps, limit{cfg.MaxPerHour, len(asked), "locks", "release.max_per_hour", func(locksteward.Request) bool { return true }})
	if auto {
		caps = append(caps, limit{cfg.AutoPerHour, len(asked), "locks without a person", "release.auto_per_hour", automatic})
	}
	for _, c := range caps {
		if err := c.allows(list, at); err != nil {
			return err
		}
	}
	return nil
}

// limit is one cap for so many more requests.
type limit struct {
	most, more int
	what, key  string
	counts     func(locksteward.Request) bool
}

func (l limit) allows(list []locksteward.Request, at time.Time) error {
	var ended []time.Time // the oldest first
	underWay := 0
	for _, r := range list {
		switch {
		case r.Evidence.Act == locksteward.ActUndo || r.Evidence.Act == locksteward.ActLift || !l.counts(r):
		case r.State.Final():
			ended = append(ended, r.FinishedAt)
		default:
			underWay++
		}
	}
	used := len(ended) + underWay
	if used+l.more <= l.most {
		return nil
	}
	slices.SortFunc(ended, time.Time.Compare)
	var when string
	switch first := used + l.more - l.most; {
	case l.more > l.most:
		when = fmt.Sprintf("%d at once are never possible, ask for fewer", l.more)
	case first <= len(ended):
		when = "free again at " + ended[first-1].Add(capWindow).UTC().Format(time.RFC3339)
	default:
		when = "free again about " + at.Add(capWindow).UTC().Format(time.RFC3339) + ", an hour after those that are being released now have ended"
	}
	return refused("at most %d %s may be released in an hour (%s), and %d were, or are being, released: %s. What was asked for stays pending; look why so many are stuck, then wait or raise %s",
		l.most, l.what, l.key, used, when, l.key)
}

// automatic says whether a request was decided without a person.
func automatic(r locksteward.Request) bool {
	yes, _ := lastWords(r)
	return len(yes) == 1 && yes[0] == AgentName
}

// Warnings are what a person should know before they approve a request: what
// would keep the agent from deciding by itself.
func (s *Service) Warnings(r locksteward.Request) []string {
	var out []string
	at := s.now()
	if name := pauseWindow(s.settings.Load().cfg.PauseWindows, at); name != "" {
		out = append(out, "Automatic releases are paused: "+name+".")
	}
	if p := s.Pauses().Automatic; p != nil {
		out = append(out, fmt.Sprintf("%s paused automatic releases%s.", p.By, p.words()))
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
		out = append(out, "This hold cannot be distinguished from the next one of that name: if it was released and taken again meanwhile, the new hold is deleted.")
	case e.WeakIdentity():
		out = append(out, "The identity of this lock is weak: its value is a constant or a name, which the next holder writes too, and only its expiry tells this hold from that one.")
	}
	return out
}

// mayActAlone refuses an act without a person, but for the caps: see reserve.
func (s *Service) mayActAlone(ctx context.Context, r locksteward.Request) error {
	if err := s.pauses.read(ctx); err != nil { // an admin may have paused releases at another replica
		return err
	}
	if err := s.refusePaused(); err != nil {
		return err
	}
	at := s.now()
	cfg := s.settings.Load().cfg
	if name := pauseWindow(cfg.PauseWindows, at); name != "" {
		return refused("automatic releases are paused: %s", name)
	}
	if p := s.Pauses().Automatic; p != nil {
		return refused("automatic releases are paused: by %s at %s%s (%s)", p.By, p.Since.UTC().Format(time.RFC3339), p.words(), p.Reason)
	}
	if n := s.auto.open(r.Evidence.Target, at); n > 0 {
		return refused("the circuit breaker is open: %d locks of target %q looked dead at once", n, r.Evidence.Target)
	}
	return nil
}
