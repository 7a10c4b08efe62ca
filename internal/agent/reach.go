package agent

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/internal/connect"
)

// pingWithin is how long the connections to a target that stand are waited for, before
// it is tried with a new one: they may all be busy, or lead to a server that was replaced.
const pingWithin = 500 * time.Millisecond

// reach says why no master of a target answers; "" if one does. Its own connections are
// asked where this replica works on the target and they answered lately; if they do
// not, and elsewhere, connections are made for this and closed.
func (a *Agent) reach(ctx context.Context, name string) string {
	if w, err := a.watched(name); err == nil && w.answers(ctx) {
		return ""
	}
	cc, err := a.fleet.configured(name).Connect()
	if err != nil {
		return err.Error()
	}
	return connect.Explain(connect.Reach(ctx, cc))
}

// answers says whether a master answers over a connection that stands. After one that
// did not, the time is better spent on new ones, until these lead there again.
func (w *watched) answers(ctx context.Context) bool {
	if w.agent.keeper.Blind(w.target.Name) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	return w.conn.Ping(ctx) == nil
}
