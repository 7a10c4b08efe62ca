package respcheck

import "fmt"

// Error is a connection that was closed for what the server sent.
type Error struct {
	Server string // host:port that was asked
	What   string // "an array of 70000 elements (65536 at most are taken)"
}

// Error says what it was and of which server.
func (e *Error) Error() string {
	return fmt.Sprintf("close connection to %s: it sent %s", e.Server, e.What)
}
