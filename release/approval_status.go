package release

import "github.com/locksteward/locksteward"

// ApprovalStatus is what still is to be decided on a request, by the policy as it is
// now.
type ApprovalStatus struct {
	// Approvals and Denials are how many people must say so; 0 where the class is
	// not configured any more or allows no release.
	Approvals int
	Denials   int
	// Warnings are those of [Service.Warnings]; none of a request that is over.
	Warnings []string
}

// ApprovalStatus says what is needed to decide on a request.
func (s *Service) ApprovalStatus(r locksteward.Request) ApprovalStatus {
	var out ApprovalStatus
	if c, err := s.policy(r.Evidence.Class); err == nil {
		out.Approvals, out.Denials = s.needed(r, c), c.DenialsOrDefault()
	}
	if !r.State.Final() {
		out.Warnings = s.Warnings(r)
	}
	return out
}

// PauseStatus is everything that pauses releases now: the pauses that admins set and
// those of the configuration.
type PauseStatus struct {
	Pauses
	// Unknown says that the store could not be read since the start: all releases count
	// as paused.
	Unknown bool
	// Configured is release.paused; Window is the name of the window of
	// release.pause_windows that holds now, "" for none.
	Configured bool
	Window     string
}

// PauseStatus returns everything that pauses releases now.
func (s *Service) PauseStatus() PauseStatus {
	cfg, at := s.settings.Load().cfg, s.now()
	now, known := s.pauses.get(at)
	return PauseStatus{Pauses: now, Unknown: !known, Configured: cfg.Paused, Window: pauseWindow(cfg.PauseWindows, at)}
}
