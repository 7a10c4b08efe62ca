package scanner

import "github.com/locksteward/locksteward"

// maxEnded is of how many holds the end is remembered at least; at most twice as many
// are kept.
const maxEnded = 5000

// endedHolds are the last holds seen to end whose tokens are unique: if one is back on other
// data, that data is older than its end.
type endedHolds struct {
	young, old map[string]endedHold // by key
	// lines is which line of data each server has, by address: its replication id,
	// which is another after a restart and after a failover.
	lines map[string]string
}

// endedHold is what identifies a hold: no more, since thousands are kept.
type endedHold struct {
	node, digest, claim string
	line                string
}

// onLine notes which line of data the server at addr has.
func (t *Table) onLine(addr, line string) {
	if line == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.lines == nil || len(t.ended.lines) > 1024 {
		t.ended.lines = map[string]string{}
	}
	t.ended.lines[addr] = line
}

// rememberEnd records that the hold of e had ended when node was read. t.mu is held.
func (t *Table) rememberEnd(e *entry, node string) {
	line := t.ended.lines[node]
	if line == "" || e.digest == "" || e.traits.identity != locksteward.IdentityStrong || e.traits.sharedToken {
		return // nothing, or nothing for certain, could be said of it later
	}
	if t.ended.young == nil || len(t.ended.young) >= maxEnded {
		t.ended.old, t.ended.young = t.ended.young, map[string]endedHold{}
	}
	was := endedHold{node: e.traits.node, digest: e.digest, line: line}
	if e.claim != nil {
		was.claim = e.claim.ID
	}
	t.ended.young[e.key] = was
}

// isBack notes that l, which begins, is a hold whose end was seen. Whether that was on
// older data, which a restart or a failover brought, the next sweep knows. The table is
// locked.
func (t *Table) isBack(l *lockState) {
	was, known := t.ended.young[l.key]
	if !known {
		was, known = t.ended.old[l.key]
	}
	if !known || was.digest != l.digest || was.claim != "" && l.claim != nil && was.claim != l.claim.ID {
		return
	}
	delete(t.ended.young, l.key)
	delete(t.ended.old, l.key)
	t.failoverSuspects = append(t.failoverSuspects, failoverSuspect{key: l.key, from: was.node, to: l.traits.node, ended: was.line})
}
