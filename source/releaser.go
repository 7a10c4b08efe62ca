package source

import (
	"context"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// A Releaser frees exactly the hold that a request froze, or nothing. It has
// credentials of its own and connects only while a method runs. It is safe for
// concurrent use.
//
// The evidence of a request says what to do ([locksteward.Act]): delete the hold,
// put a placeholder in its place, or follow up on an earlier request, whose hold
// is put back or whose placeholder is removed.
type Releaser interface {
	// Limits returns what cannot be done with a hold, from its evidence alone. It
	// does no I/O.
	Limits(hold locksteward.Evidence) Limits
	// Preview reads the lock and returns what Release would do now. It changes
	// nothing.
	Preview(ctx context.Context, req locksteward.Request) (Preview, error)
	// Release compares the hold with the evidence and does what the request asks for,
	// in one step of the store and at most once for each request id. An error means
	// that the outcome is not known yet; a certain failure is an outcome.
	Release(ctx context.Context, req locksteward.Request) (Outcome, error)
	// Resolve finds out what an earlier Release of the request did, and ensures that
	// one which did not happen never will. It deletes no lock. An error means that it
	// cannot be found out now.
	Resolve(ctx context.Context, req locksteward.Request) (Outcome, error)
}

// Limits are the reasons why something cannot be done with a hold; the zero value
// has none.
type Limits struct {
	// Release is why the lock can never be released safely. It wraps
	// locksteward.ErrRefused.
	Release error
	// Decision is why each release needs a person who looked at that very lock,
	// whatever rules and policy say.
	Decision string
	// Placeholder is why nothing can be put in the place of the lock: no lock-delay
	// and no take-over.
	Placeholder string
	// Undo is why the lock cannot be put back after its release.
	Undo string
}

// Preview is what a release would do now.
type Preview struct {
	// Found says whether the lock exists; Now is its hold, as far as it is compared.
	Found bool
	Now   locksteward.Evidence
	// Differences are what is other than the request's evidence: with any, the release
	// ends in changed.
	Differences []string
	// Refusal is why the lock cannot be released safely in its current state; nil if it
	// can. It wraps locksteward.ErrRefused.
	Refusal error
	// MissingRights says that the store would refuse the release to the releaser's user, as
	// half a sentence that names the user; "" if it would not, or that is not known. Where the
	// user may not even read the lock, nothing else of the preview is known.
	MissingRights string
	// AlsoEnds are the names of other locks that the release ends with this one: those of the
	// same session.
	AlsoEnds []string
	// Keys, Script and Args are what would be sent to the store; tokens are masked.
	Keys   []string
	Script string
	Args   []string
}

// Outcome is what one release did.
type Outcome struct {
	State locksteward.RequestState // released, already_gone, changed, failed or unknown
	// Reason is half a sentence for people: why it failed or is not known.
	Reason       string
	ConfirmedBy  Confirmation // "" where nothing was sent
	WaitersWoken int64
	// Differences are what was other than the evidence, without tokens.
	Differences []string
}

// Confirmation is how the outcome of a release became known. It is a word of the
// audit trail.
type Confirmation string

// The confirmations. Where nothing was sent, or the store has no record, there is
// none: the state of the lock is the evidence then.
const (
	ConfirmedByAnswer Confirmation = "answer" // the answer to the release
	ConfirmedByRecord Confirmation = "record" // the record that the release left in the store, read later
)

// PlaceholderMargin is how much longer a placeholder lasts by itself than its
// request asks for: the request that removes it must come first, or no waiter is
// woken.
const PlaceholderMargin = time.Minute

// Failed returns the outcome of a release that certainly changed nothing.
func Failed(reason string) Outcome {
	return Outcome{State: locksteward.RequestFailed, Reason: reason}
}

// Unknown returns the outcome of a release that left no record.
func Unknown(reason string) Outcome {
	return Outcome{State: locksteward.RequestUnknown, Reason: reason}
}

// Differences returns, in words that reveal no token, what a later reading of the
// same lock has other than the frozen evidence. None means that it is the same
// hold, untouched, or renewed if its holder is known to live.
func Differences(was, is locksteward.Evidence) []string {
	var out []string
	if was.Type != is.Type {
		return []string{fmt.Sprintf("its type was %s and is %s", was.Type, is.Type)}
	}
	if was.TokenDigest != is.TokenDigest || is.TokenDigest == "" {
		out = append(out, "its value is another")
	}
	if was.ClaimID != "" && is.ClaimID != "" && was.ClaimID != is.ClaimID {
		out = append(out, "its acquisition is another")
	}
	if was.ExpireAt != is.ExpireAt && !was.HolderAlive {
		out = append(out, "its expiry moved: somebody renewed it or took it again")
	}
	if was.Count != is.Count {
		out = append(out, fmt.Sprintf("its holder held it %d times and holds it %d times", was.Count, is.Count))
	}
	if was.Library != is.Library {
		out = append(out, fmt.Sprintf("it was a %s lock and is a %s lock", was.Library, is.Library))
	}
	return out
}
