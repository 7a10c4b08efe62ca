package release

import "github.com/locksteward/locksteward"

// notify adds an event about a request to the entry that it belongs to.
func notify(e locksteward.Entry, kind locksteward.EventKind, r locksteward.Request, text string) locksteward.Entry {
	e.Event = &locksteward.Event{
		ID: r.ID + "/" + string(kind), Kind: kind, At: e.At, Actor: e.Actor, Target: r.Evidence.Target, Request: r, Text: text,
		Loud: kind == locksteward.EventBreakGlass,
	}
	return e
}
