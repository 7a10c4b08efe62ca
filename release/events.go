package release

import (
	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// english renders a message for the audit trail, for requests and for the log.
func english(m locksteward.Message) string { return catalogue.Text("en", m) }

// actWord names an act in a message.
func actWord(a locksteward.Act) locksteward.Message {
	return locksteward.NewMessage("word." + a.String())
}

// notify adds an event about a request to the entry that it belongs to.
func notify(e locksteward.Entry, kind locksteward.EventKind, r locksteward.Request, m locksteward.Message) locksteward.Entry {
	e.Event = &locksteward.Event{
		ID: r.ID + "/" + string(kind), Kind: kind, At: e.At, Actor: e.Actor, Target: r.Evidence.Target, Request: r, Message: m,
		Loud: kind == locksteward.EventBreakGlass,
	}
	return e
}
