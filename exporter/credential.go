package exporter

import (
	"cmp"
	"slices"
	"time"
)

// maxCredentials bounds how many certificates have a series: those that end first.
const maxCredentials = 100

// Credential is a certificate, an authority or a password in a file, or
// the certificate that a server shows.
type Credential struct {
	// Use says what for: target, release, alert, heartbeat, audit, store, console
	// or metrics.
	Use string
	// Target is the target's name, "" for what belongs to none.
	Target string
	// File is its key in the configuration, or "server" for what a server shows.
	File string
	// Expires is when it ends; zero: never.
	Expires time.Time
	// Refused says that the file as it is now cannot be used, so that what it held
	// before is.
	Refused bool
}

// SetCredentials says how all credentials stand.
func (e *Exporter) SetCredentials(list []Credential) {
	ending := slices.DeleteFunc(slices.Clone(list), func(c Credential) bool { return c.Expires.IsZero() })
	slices.SortStableFunc(ending, func(a, b Credential) int { return a.Expires.Compare(b.Expires) })
	refused := slices.DeleteFunc(slices.Clone(list), func(c Credential) bool { return !c.Refused })
	byName := func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Use, b.Use), cmp.Compare(a.Target, b.Target), cmp.Compare(a.File, b.File))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	ending, refused = ending[:min(len(ending), maxCredentials)], refused[:min(len(refused), maxCredentials)]
	slices.SortFunc(ending, byName)
	slices.SortFunc(refused, byName)
	if !slices.EqualFunc(e.ending, ending, sameCredential) || !slices.EqualFunc(e.refused, refused, sameCredential) {
		e.ending, e.refused, e.dirty = ending, refused, true
	}
}

func sameCredential(a, b Credential) bool {
	return a.Expires.Equal(b.Expires) && a.Use == b.Use && a.Target == b.Target && a.File == b.File && a.Refused == b.Refused
}

// dropCredentials forgets those of a target. The caller holds e.mu.
func (e *Exporter) dropCredentials(target string) {
	its := func(c Credential) bool { return c.Target == target }
	e.ending, e.refused = slices.DeleteFunc(slices.Clone(e.ending), its), slices.DeleteFunc(slices.Clone(e.refused), its)
}

func (e *Exporter) emitCredentials(s *building) {
	for _, c := range e.ending {
		s.series(certificateExpiry, float64(c.Expires.Unix()), c.Use, c.Target, c.File)
	}
	for _, c := range e.refused {
		s.series(credentialRefused, 1, c.Use, c.Target, c.File)
	}
}
