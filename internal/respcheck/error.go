package respcheck

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Error is a connection that was closed for what the server sent.
type Error struct {
	Server string // host:port that was asked
	What   string // "an array of 70000 elements (65536 at most are taken)"
}

// Error says what it was and of which server.
func (e *Error) Error() string {
	return fmt.Sprintf("close connection to %s: it sent %s", e.Server, e.What)
}

// unreadable is how go-redis begins to say that a reply is not one of the command.
var unreadable = []string{"redis: can't parse ", "redis: got ", "redis: invalid reply", "redis: the length of ", "redis: RESP3 map key"}

// Lied says that err, of a call of go-redis, is that a server sent what Redis does not:
// something that is no reply, or none that the command has. Asked again it will hardly say
// something else.
func Lied(err error) bool {
	if _, ok := errors.AsType[*Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*strconv.NumError](err); ok {
		return true
	}
	if _, reply := errors.AsType[interface {
		error
		RedisError()
	}](err); reply || err == nil {
		return false
	}
	text := err.Error()
	for _, begin := range unreadable {
		if strings.Contains(text, begin) {
			return true
		}
	}
	return false
}
