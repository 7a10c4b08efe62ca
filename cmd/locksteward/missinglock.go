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

// How much is shown of a missing lock.
const (
	goneRequests = 3
	goneEvents   = 20
)

// missingLockError is the error for a lock that is not held now, of which something is known.
type missingLockError struct {
	err  error
	past string // lines for people: its placeholder, its last requests and events
}

func (e *missingLockError) Error() string {
	return e.err.Error() + "; its past is shown without --output"
}
func (e *missingLockError) Unwrap() error { return e.err }

// describeMissingLock makes the error for a missing lock a [missingLockError], if anything is known
// of the lock. Other errors are returned unchanged.
func describeMissingLock(ctx context.Context, client *apiclient.Client, ref lockRef, err error) error {
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
			b.WriteString(placeholderText(r, time.Now()))
		}
		fmt.Fprintf(&b, "\n  %s  request %s by %s: %s", r.CreatedAt.Local().Format(time.DateTime), r.ID, oneLine(r.Requester), showAct(r.Evidence))
		if r.Outcome != "" {
			fmt.Fprintf(&b, ": %s", oneLine(r.Outcome))
		} else {
			fmt.Fprintf(&b, " (%s)", r.State)
		}
	}
	for _, e := range past.Events {
		fmt.Fprintf(&b, "\n  %s  %s", e.At.Local().Format(time.DateTime), oneLine(e.Words()))
		switch {
		case e.Rule != "":
			fmt.Fprintf(&b, ": %s", oneLine(e.Rule))
		case e.HeldMs > 0:
			least := ""
			if e.HeldIsMinimum {
				least = "at least "
			}
			fmt.Fprintf(&b, ", held for %s%s", least, span(time.Duration(e.HeldMs)*time.Millisecond))
		}
		if holder := showHolder(e.Holder); holder != "-" {
			fmt.Fprintf(&b, " by %s", holder)
		}
	}
	if b.Len() == 0 {
		return fmt.Errorf("%w; 'locksteward locks list' lists the locks", err)
	}
	return &missingLockError{err: err, past: fmt.Sprintf("%s on %s is not held now%s\n", cellKey(api.NewKey(ref.key)), oneLine(ref.target), b.String())}
}

// placeholderText describes the placeholder that the newest request left, "" for none.
func placeholderText(r api.Request, now time.Time) string {
	stand := time.Duration(r.Evidence.PlaceholderMs) * time.Millisecond
	until := r.FinishedAt.Add(stand)
	if r.State != string(locksteward.RequestReleased) || stand <= 0 || !now.Before(until) {
		return ""
	}
	what := "a lock-delay holds the key"
	if r.Evidence.Act == string(locksteward.ActTakeOver) {
		what = "it was taken over: a placeholder holds the key"
	}
	return fmt.Sprintf("; %s until %s; 'locksteward release undo %s --lift' ends that", what, until.Local().Format(time.DateTime), r.ID)
}
