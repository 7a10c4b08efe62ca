package release

import (
	"time"

	"github.com/locksteward/locksteward"
)

// Standing is what still is to be decided on a request, by the policy as it is
// now.
type Standing struct {
	// Approvals and Denials are how many people must say so; 0 where the class is
	// not configured any more or allows no release.
	Approvals int
	Denials   int
	// Warnings are those of [Service.Warnings]; none of a request that is over.
	Warnings []string
}

// Standing says what is needed to decide on a request.
func (s *Service) Standing(r locksteward.Request) Standing {
	var out Standing
	if c, err := s.policy(r.Evidence.Class); err == nil {
		out.Approvals, out.Denials = needed(r, c), c.DenialsOrDefault()
	}
	if !r.State.Final() {
		out.Warnings = s.Warnings(r)
	}
	return out
}

// Halt is all that keeps releases from happening now: what admins stopped, and
// what the configuration says.
type Halt struct {
	Stops
	// Unknown says that the store could not tell since the start what admins
	// stopped: everything counts as stopped.
	Unknown bool
	// KillSwitch is the configuration's; Window is the name of its freeze that holds
	// now, "" for none.
	KillSwitch bool
	Window     string
}

// Halt returns all that keeps releases from happening now. An admin's freeze that
// is over is not in it.
func (s *Service) Halt() Halt {
	now, known := s.stops.get()
	cfg, at := s.settings.Load().cfg, s.now()
	if !at.Before(now.FrozenUntil) {
		now.FrozenUntil, now.FrozenBy, now.FrozenWhy = time.Time{}, "", ""
	}
	return Halt{Stops: now, Unknown: !known, KillSwitch: cfg.KillSwitch, Window: frozen(cfg.Freeze, at)}
}
