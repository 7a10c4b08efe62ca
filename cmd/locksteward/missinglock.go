package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// How much is told of a lock that is not there.
const (
	goneRequests = 3
	goneEvents   = 5
)

// goneError is the error of a lock that is not there, with what is known of it.
type goneError struct {
	err  error
	text string
}

func (e *goneError) Error() string { return e.err.Error() + e.text }
func (e *goneError) Unwrap() error { return e.err }

// whatBecameOf adds to an error that there is no such lock what is known of it: what
// stands in its place, what was asked for it, and how its holds ended. Another error
// stays as it is, and so does this one where nothing more is known.
func whatBecameOf(ctx context.Context, client *apiclient.Client, ref lockRef, err error) error {
	if !errors.Is(err, locksteward.ErrNotFound) {
		return err
	}
	requests, askErr := client.Requests(ctx, apiclient.RequestsQuery{Target: ref.target, Key: &ref.key, Limit: goneRequests})
	if askErr != nil {
		return err
	}
	past, askErr := client.LockEvents(ctx, ref.target, ref.db, ref.key, goneEvents)
	if askErr != nil {
		return err
	}
	var b strings.Builder
	for i, r := range requests.Requests {
		if i == 0 {
			b.WriteString(inItsPlace(r, time.Now()))
		}
		fmt.Fprintf(&b, "\n  %s  request %s by %s: %s", r.CreatedAt.Local().Format(time.DateTime), r.ID, oneLine(r.Requester), showAct(r.Evidence))
		if r.Outcome != "" {
			fmt.Fprintf(&b, ": %s", oneLine(r.Outcome))
		} else {
			fmt.Fprintf(&b, " (%s)", r.State)
		}
	}
	for _, e := range past.Events {
		fmt.Fprintf(&b, "\n  %s  %s", e.At.Local().Format(time.DateTime), oneLine(e.Kind))
		switch {
		case e.Rule != "":
			fmt.Fprintf(&b, ": %s", oneLine(e.Rule))
		case e.HeldMs > 0:
			fmt.Fprintf(&b, ", held for %s", span(time.Duration(e.HeldMs)*time.Millisecond))
		}
		if holder := showHolder(e.Holder); holder != "-" {
			fmt.Fprintf(&b, " by %s", holder)
		}
	}
	if b.Len() == 0 {
		return err
	}
	return &goneError{err: err, text: b.String()}
}

// inItsPlace says what the newest request put where the lock was, "" for nothing.
func inItsPlace(r api.Request, now time.Time) string {
	stand := time.Duration(r.Evidence.StandMs) * time.Millisecond
	until := r.FinishedAt.Add(stand)
	if r.State != string(locksteward.RequestReleased) || stand <= 0 || !now.Before(until) {
		return ""
	}
	what := "nobody can get it: a lock-delay stands in its place"
	if r.Evidence.Act == string(locksteward.ActTakeOver) {
		what = "it was taken over: an owner that nobody is stands in its place"
	}
	return fmt.Sprintf("; %s until %s, and 'locksteward release lift %s' ends that", what, until.Local().Format(time.DateTime), r.ID)
}
