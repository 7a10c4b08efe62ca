package locksteward

import "errors"

// Sentinels that cross package borders.
var (
	// ErrNotFound is "no such lock, request or target".
	ErrNotFound = errors.New("not found")
	// ErrRefused is "policy says no": missing role, class not releasable, no
	// release credentials, a pause of releases. The CLI exits with 4.
	ErrRefused = errors.New("refused by policy")
	// ErrConflict is "it changed meanwhile": the request is final already, or the
	// lock is not the one that was asked about.
	ErrConflict = errors.New("conflict")
	// ErrClaimLost is "another sender has the notification": it claimed it meanwhile.
	ErrClaimLost = errors.New("another sender has the notification")
	// ErrInvalid is bad input by the caller. The CLI exits with 2.
	ErrInvalid = errors.New("invalid")
)
