package model

import "fmt"

// Step is something that may happen next.
type Step struct {
	Name string
	To   State
}

// start is a lock that is held and a request that froze it.
func start(id Identity) State {
	s := State{held: true, status: Pending, version: 1}
	s.evidence = id.see(true, s.hold)
	return s
}

// next returns all that may happen in s.
func next(id Identity, v Variant, s State) []Step {
	var out []Step
	add := func(name string, change func(*State)) {
		to := s
		change(&to)
		out = append(out, Step{name, to})
	}
	holderSteps(id, s, add)
	peopleSteps(id, v, s, add)
	for i := range agents {
		agentSteps(id, v, s, i, add)
		networkSteps(id, v, s, i, add)
	}
	quiet := true
	for i := range agents {
		at := s.agents[i].at
		quiet = quiet && !s.scripts[i].sent && at != look && at != send && at != wait
	}
	if quiet && s.record != noRecord && !s.evicted {
		add("the server loses the record", func(t *State) { t.record, t.evicted = noRecord, true })
	}
	return out
}

func holderSteps(_ Identity, s State, add func(string, func(*State))) {
	if s.held {
		add("the holder releases", func(t *State) { t.held = false })
		if s.hold.renewals < maxRenewals {
			add("the holder renews", func(t *State) { t.hold.renewals++ })
		}
	} else if s.hold.inc+1 < maxHolds {
		add("somebody takes the lock", func(t *State) { t.held, t.hold = true, hold{inc: s.hold.inc + 1} })
	}
}

func peopleSteps(id Identity, v Variant, s State, add func(string, func(*State))) {
	if s.status != Pending {
		return
	}
	if s.seen != s.version {
		add("the approver looks", func(t *State) { t.seen, t.saw = s.version, s.frozen })
	}
	// Another request takes the place of this one: to the approver it is the same
	// line on the screen, with another hash.
	if now := id.see(s.held, s.hold); s.held && now != s.evidence && s.version < 3 {
		add("the lock is asked for anew", func(t *State) { t.evidence, t.frozen, t.version = now, s.hold, s.version+1 })
	}
	if s.seen != 0 && (s.seen == s.version || v.ApproveUnseen) {
		add("the approver approves", func(t *State) { t.status, t.approved = Approved, s.saw })
	}
}

func agentSteps(id Identity, v Variant, s State, i int, add func(string, func(*State))) {
	a := s.agents[i]
	do := func(what string, change func(*State)) { add(fmt.Sprintf("agent %d %s", i, what), change) }
	at := func(t *State, to step) { t.agents[i] = agent{at: to} }
	end := func(t *State, o Status) { t.agents[i] = agent{at: finish, outcome: o} }
	now := id.see(s.held, s.hold)

	if a.at != idle && s.crashes < maxCrashes {
		do("stops", func(t *State) { at(t, idle); t.crashes++ })
	}
	switch a.at {
	case idle:
		if s.status == Approved {
			do("writes the intent", func(t *State) { t.status = Executing; at(t, look) })
		}
		// The one that wrote it may still be alive, and slow.
		if s.status == Executing && !s.scripts[i].sent {
			to := ask
			if v.RetryOpenIntent {
				to = look
			}
			do("finds an open intent", func(t *State) { at(t, to) })
		}
	case look:
		switch {
		case v.BlindDelete, now == s.evidence, v.NoLineage && now.value == s.evidence.value:
			do("finds the lock as it was", func(t *State) { at(t, send) })
		case now.value == 0:
			do("finds no lock", func(t *State) { end(t, Gone) })
		default:
			do("finds another lock", func(t *State) { end(t, Changed) })
		}
	case send:
		do("sends the script", func(t *State) { at(t, wait); t.scripts[i] = script{true, s.evidence, int8(i)} })
	case wait:
		do("gives up waiting", func(t *State) { at(t, ask) })
	case ask:
		switch {
		case s.record > withdrawn && !v.NoRecord:
			do("reads the record", func(t *State) { end(t, s.record.outcome()) })
		case v.NoWithdrawal || v.NoRecord:
			do("finds no record", func(t *State) { at(t, judge) })
		default:
			do("withdraws the request", func(t *State) { at(t, judge); t.record = withdrawn })
		}
	case judge:
		o := Unknown
		switch {
		case now.value == 0 && v.GuessGone:
			o = Gone
		case id != None && now == s.evidence, id == Strong && now.value == s.evidence.value && now.value != 0:
			o = Failed
		}
		do("concludes from the lock: "+o.String(), func(t *State) { end(t, o) })
	case finish:
		do("writes the outcome "+a.outcome.String(), func(t *State) {
			at(t, idle)
			if !t.status.final() || v.OverwriteFinal {
				if t.status.final() {
					t.was = t.status
				}
				t.status = a.outcome
			}
		})
	}
}

func networkSteps(id Identity, v Variant, s State, i int, add func(string, func(*State))) {
	m := s.scripts[i]
	if !m.sent {
		return
	}
	add(fmt.Sprintf("the script of agent %d is lost", i), func(t *State) { t.scripts[i] = script{} })
	run := func(t *State) Status {
		t.scripts[i] = script{}
		if t.record != noRecord && !v.NoRecord {
			return t.record.outcome()
		}
		now := id.see(t.held, t.hold)
		same := now == m.expect || v.BlindDelete && now.value != 0 || v.NoLineage && now.value == m.expect.value
		record := func(e exec) Status {
			if !v.NoRecord {
				t.record = e
			}
			return e.outcome()
		}
		switch {
		case now.value == 0:
			return record(recordGone)
		case !same:
			return record(recordChanged)
		}
		t.deletions++
		t.wrong = t.wrong || id != None && t.hold != t.approved
		t.held = false
		return record(recordReleased)
	}
	add(fmt.Sprintf("the script of agent %d runs, its reply is lost", i), func(t *State) { run(t) })
	if s.agents[i].at == wait {
		add(fmt.Sprintf("the script of agent %d runs", i), func(t *State) {
			t.agents[i] = agent{at: finish, outcome: run(t)}
		})
	}
}
