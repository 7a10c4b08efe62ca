package rules

// inhibitedByCycle are the rules that say of one lock of a deadlock what follows
// from it: who waits for ever holds for ever, and renews.
var inhibitedByCycle = map[string]bool{HoldTooLong: true, "renewal/zombie": true}

// deadlocks are the cycles that people are notified of.
type deadlocks struct {
	// of is the fingerprint of the finding by each lock that is held in the round.
	of map[subject]string
	// away are the fingerprints of those from before a restart, of which not all
	// was looked at since: which locks they are about is not known yet.
	away map[string]bool
}

// deadlocked is the fingerprint of the deadlock that explains what a rule says of
// one lock; "" if none does. The waits of this evaluation are known already.
func (p *pass) deadlocked(rule string, s subject) string {
	if !inhibitedByCycle[rule] {
		return ""
	}
	if p.deadlocks == nil {
		p.deadlocks = p.e.deadlocks()
	}
	if by := p.deadlocks.of[s]; by != "" {
		return by
	}
	if known := p.e.table.find(s, rule, ""); known != nil && p.deadlocks.away[known.kind.inhibitedBy] {
		return known.kind.inhibitedBy
	}
	return ""
}

func (e *Engine) deadlocks() *deadlocks {
	out := &deadlocks{of: map[subject]string{}, away: map[string]bool{}}
	for id, at := range e.waits.findings {
		tr := e.table.find(at, WaitCycle, id)
		if tr == nil || !explains(tr.outline()) {
			continue
		}
		by, c := tr.outline().Fingerprint(), e.waits.cycles[id]
		if c == nil {
			out.away[by] = true
			continue
		}
		for i := range c.members {
			a := c.holds(i)
			out.of[subject{target: a.target, db: a.id.DB, key: a.id.Key}] = by
		}
	}
	return out
}
