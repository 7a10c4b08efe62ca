package rules

import "github.com/locksteward/locksteward"

// migrationDirty reports schema migrations that failed half-way.
type migrationDirty struct{}

var migrationDirtyDoc = Doc{
	Name:     "migration/dirty",
	Title:    "A schema migration failed half-way",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	For:      RecheckAfter,
	Cause:    message("migration/dirty.cause"),
	Remedy:   message("migration/dirty.remedy"),
}

// Doc implements [Rule].
func (migrationDirty) Doc() Doc { return migrationDirtyDoc }

// Evaluate implements [Rule].
func (migrationDirty) Evaluate(in Input) Verdict {
	l := in.Lock
	if l.Type != locksteward.TypeDirtyMigration {
		return in.notApplicable(because("it is a lock, not the mark of a migration"))
	}
	return in.fires(locksteward.Finding{
		Summary:  message("migration/dirty.summary", locksteward.LockName(l.Key)),
		Evidence: join(seenLine(l, in.Now), ttlNoneLibraryLine(l)),
		CounterEvidence: join(
			message("migration/dirty.under-way"),
		),
	})
}
