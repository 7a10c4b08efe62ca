package zksource

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// isAuth reports whether a right is missing, or nobody is logged in.
func isAuth(err error) bool { return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) }

// isNetwork reports whether the network broke under a request.
func isNetwork(err error) bool {
	_, is := errors.AsType[*net.OpError](err)
	return is
}

// explain says in a sentence what an error means and what to do.
func explain(err error, s spec) string {
	path := ""
	if p, ok := errors.AsType[*pathError](err); ok {
		path = locksteward.DisplayKey(p.path)
	}
	who := "nobody is logged in, and anybody"
	if s.user != "" {
		who = fmt.Sprintf("user %q", s.user)
	}
	away, isAway := errors.AsType[*awayError](err)
	switch {
	case err == nil:
		return ""
	case isAway:
		return "no server serves us: " + away.Error()
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Sprintf("%s may not read %s: the password is wrong, or the ACL of the node lacks READ; see `locksteward acl`", who, path)
	case errors.Is(err, zk.ErrAuthFailed):
		return "the servers refuse the login: they must allow the scheme digest"
	case errors.Is(err, source.ErrStalled), errors.Is(err, errTimeout), errors.Is(err, context.DeadlineExceeded):
		return "the server did not answer in time: it may be overloaded, paused or away"
	case errors.Is(err, zk.ErrSessionExpired):
		return "our session expired: the server received nothing from us for longer than its timeout; the next attempt begins another"
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrClosing), errors.Is(err, zk.ErrNoServer), errors.Is(err, net.ErrClosed), isNetwork(err):
		return "the connection broke: the server ended, or the network is interrupted"
	case errors.Is(err, errChanging), errors.Is(err, errManyHolds):
		return path + ": " + errors.Unwrap(err).Error()
	}
	return err.Error()
}
