package release

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// EventKind is what people may want to be told of.
type EventKind string

// The kinds of events.
const (
	EventRequested    EventKind = "release.requested"     // somebody must decide
	EventReminder     EventKind = "release.reminder"      // it ends soon, undecided
	EventSelfApproved EventKind = "release.self_approved" // by self_approval: alert
	EventAuto         EventKind = "release.auto"          // decided without a person
	EventBreakGlass   EventKind = "release.break_glass"   // one person, past the class's rules
	EventFinal        EventKind = "release.final"         // over, in whatever way
	EventStuck        EventKind = "release.unknown"       // over, and nobody knows how
	EventResurrected  EventKind = "release.resurrected"   // the old holder wrote the key again
	EventStopped      EventKind = "release.stopped"       // kill switch or freeze, on or off
	EventBreaker      EventKind = "release.breaker"       // many locks look dead at once
)

// Event is something that people may want to be told of. It holds no token.
type Event struct {
	// ID is the same whenever the same thing is told, in every process.
	ID     string
	Kind   EventKind
	At     time.Time // agent's clock
	Actor  string
	Target string
	// Request is as it is after the event; zero for one about no request.
	Request locksteward.Request
	Text    string // a sentence
	// Loud cannot be silenced, muted or left out.
	Loud bool
}

// eventOf is an event about a request.
func eventOf(kind EventKind, at time.Time, actor string, r locksteward.Request, text string) Event {
	return Event{
		ID: r.ID + "/" + string(kind), Kind: kind, At: at, Actor: actor, Target: r.Evidence.Target, Request: r, Text: text,
		Loud: kind == EventBreakGlass,
	}
}

// change is what a transaction writes beside a request: lines of the audit trail,
// and what people are told; see lines.
type change struct {
	entries []locksteward.Entry
	events  []Event
}

func (c *change) add(entries ...locksteward.Entry) { c.entries = append(c.entries, entries...) }

func (c *change) tell(events ...Event) { c.events = append(c.events, events...) }

// lines are the entries with the events on them, so that whoever writes them can
// tell of them in the same transaction: see [EventOf]. A line tells of one event: one more
// than there are entries has a line of its own.
func (c change) lines() []locksteward.Entry {
	lines := slices.Clone(c.entries)
	for i, e := range c.events {
		if i == len(lines) {
			lines = append(lines, entry(e.At, e.Actor, string(e.Kind), e.Request, "", detail{Sentence: e.Text}))
			lines[i].Target = e.Target
		}
		var d detail
		// What was encoded here can be decoded.
		_ = json.Unmarshal(lines[i].Detail, &d)
		d.Event, d.EventID, d.Say = e.Kind, e.ID, e.Text
		lines[i].Detail = d.json()
	}
	return lines
}

// EventOf returns what a line of the audit trail tells people, with the request
// that it is about as it is after it; false if it is nothing to tell. The store
// of the agent asks for each line that it writes, inside the transaction, so
// that no event is lost.
func EventOf(line locksteward.Entry, r locksteward.Request) (Event, bool) {
	var d detail
	if json.Unmarshal(line.Detail, &d) != nil || d.Event == "" {
		return Event{}, false
	}
	return Event{
		ID: d.EventID, Kind: d.Event, At: line.At, Actor: line.Actor, Target: line.Target, Request: r, Text: d.Say,
		Loud: d.Event == EventBreakGlass,
	}, true
}
