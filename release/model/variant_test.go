package model

// Variant switches safeguards off; the zero value is the protocol as it is.
type Variant struct {
	Name string
	// BlindDelete deletes whatever stands under the key.
	BlindDelete bool
	// NoLineage compares the value alone.
	NoLineage bool
	// RetryOpenIntent executes again what was left open, in place of asking what
	// became of it.
	RetryOpenIntent bool
	// ApproveUnseen takes an approval for whatever the evidence is by then.
	ApproveUnseen bool
	// NoRecord leaves nothing beside the lock.
	NoRecord bool
	// NoWithdrawal asks for the record and leaves it at that.
	NoWithdrawal bool
	// OverwriteFinal writes an outcome over another.
	OverwriteFinal bool
	// GuessGone takes a lock that is not there for one that was not touched.
	GuessGone bool
}

// Broken are the variants that must be found out.
func Broken() []Variant {
	return []Variant{
		{Name: "blind delete", BlindDelete: true},
		{Name: "compare without lineage", NoLineage: true},
		{Name: "retry of an open intent", RetryOpenIntent: true},
		{Name: "approval not bound to the evidence", ApproveUnseen: true},
		{Name: "no record of the act", NoRecord: true},
		{Name: "no withdrawal", NoWithdrawal: true},
		{Name: "final state overwritten", OverwriteFinal: true},
		{Name: "gone taken for untouched", GuessGone: true},
	}
}
