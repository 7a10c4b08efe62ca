package locksteward

// LibraryFacts are what judgement needs to know of a lock library beyond what
// one look at a lock shows. The zero value is a library of which nothing is known.
type LibraryFacts struct {
	// NoTTLByDesign: the library cannot give its keys a TTL, or frees them by other
	// means: counters and sets of permits, and marks of tasks that live as long as
	// the task. A library that only leaves the TTL out unless it is configured to set one
	// is not one of them.
	NoTTLByDesign bool
	// NoTTLCause is what must have happened to a lock without TTL, if the library
	// always sets one; empty if not known.
	NoTTLCause Message
	// RenewalsPerLease is how many renewals the library's watchdog makes per lease,
	// whatever the lease is; 0 if not known.
	RenewalsPerLease int
}
