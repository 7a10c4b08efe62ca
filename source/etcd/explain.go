package etcdsource

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/locksteward/locksteward"
)

// maxReason bounds the text of an error that has no words of ours.
const maxReason = 300

// is says that err, or what it wraps, is an error of etcd, which comes as a type of the
// client or as a status of gRPC.
func is(err, want error) bool {
	return err != nil && (errors.Is(err, want) || strings.Contains(err.Error(), rpctypes.ErrorDesc(want)))
}

// reasons are what etcd's errors mean.
var reasons = []struct {
	err    error
	reason string
}{
	{rpctypes.ErrPermissionDenied, "the user may not do this; grant it a role with what `locksteward acl` prints"},
	{rpctypes.ErrAuthFailed, "etcd refused the user or its password; correct them"},
	{rpctypes.ErrUserEmpty, "etcd wants a user; configure one with its password"},
	{rpctypes.ErrUserNotFound, "etcd does not know the user; create it with what `locksteward acl` prints"},
	{rpctypes.ErrInvalidAuthToken, "etcd refused the login's token, which is renewed; if this stays, see the server's log"},
	{rpctypes.ErrAuthNotEnabled, "authentication is off in etcd"},
	{rpctypes.ErrNoLeader, noLeader},
	{rpctypes.ErrTimeoutDueToLeaderFail, noLeader},
	{rpctypes.ErrLeaderChanged, "etcd's leader changed meanwhile; the next sweep reads again"},
	{rpctypes.ErrTimeoutDueToConnectionLost, noLeader},
	{rpctypes.ErrTimeoutWaitAppliedIndex, "etcd is behind with its own log; look at the load and the disks of its members"},
	{rpctypes.ErrTimeout, noLeader},
	{rpctypes.ErrNoSpace, "etcd is out of space and takes no writes; compact and defragment it, then `etcdctl alarm disarm`"},
	{rpctypes.ErrCorrupt, "etcd reports corrupt data and refuses to answer; see `etcdctl alarm list`"},
	{rpctypes.ErrCompacted, "etcd dropped the revision while it was read; the next sweep reads again"},
	{rpctypes.ErrTooManyRequests, "etcd has too many requests under way; the next sweep reads again"},
	{rpctypes.ErrStopped, "etcd is being stopped; the next sweep tries again"},
}

const noLeader = "etcd has no leader, so that nothing can be read for certain; look whether most of its members run and reach each other"

// explain says in one sentence what an error means and what to do. It has no secrets: the
// client puts none into its errors.
func explain(err error) string {
	if err == nil {
		return ""
	}
	for _, r := range reasons {
		if is(err, r.err) {
			return r.reason
		}
	}
	if bound, ok := errors.AsType[*boundError](err); ok {
		return bound.Error()
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:") || strings.Contains(text, "authentication handshake failed"):
		return "the encrypted connection failed: " + short(text) + "; look at ca_file, the names in the certificate and whether the server wants a certificate of ours"
	case strings.Contains(text, "error reading server preface") || strings.Contains(text, "connection closed before server preface"):
		return "what listens there does not speak etcd's protocol; look at the port, and whether it wants etcds://"
	case strings.Contains(text, "connection refused"):
		return "nobody listens there; look whether etcd runs, and at host and port"
	case strings.Contains(text, "no such host"):
		return "the host's name is not known; correct it"
	// A member whose own request to the leader timed out says so in words alone.
	case errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded || strings.Contains(text, "context deadline exceeded"):
		return "etcd did not answer in time; look whether its members run, know a leader and can be reached"
	case status.Code(err) == codes.Unavailable:
		return "etcd cannot be reached: " + short(text) + "; look whether its members run and can be reached, and with etcds:// whether they want a certificate of ours"
	}
	return short(text) + "; see the server's log"
}

func short(text string) string {
	text = locksteward.DisplayKey(strings.Join(strings.Fields(text), " "))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
