package zksource

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// awayError says why no server serves us, by server.
type awayError struct{ reasons []string }

func (e *awayError) Error() string { return strings.Join(e.reasons, "; ") }

// diagnose asks each server by the four letter word srvr, which servers allow unless they
// are configured otherwise, why it serves us not.
func (c *client) diagnose(ctx context.Context, trace error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	reasons := make([]string, len(c.spec.servers))
	var asked errgroup.Group
	asked.SetLimit(8)
	for i, server := range c.spec.servers {
		asked.Go(func() error {
			state, err := c.serverState(ctx, server)
			if err == nil && state == stateServing {
				err = trace
			}
			reasons[i] = server + ": " + stateText(state, err)
			return nil
		})
	}
	_ = asked.Wait() // it returns no error
	slices.Sort(reasons)
	return &awayError{reasons}
}

// States of a server beside the modes in the answer to srvr: standalone, leader, follower, observer.
const (
	stateServing   = "serving" // it answered, in whatever mode
	stateReadOnly  = "read-only"
	stateNoQuorum  = "no quorum"
	stateForbidden = "srvr is not allowed"
)

// serverState asks a server for its state. An error means that it did not answer.
func (c *client) serverState(ctx context.Context, addr string) (string, error) {
	answer, err := c.fourLetters(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	return stateOf(answer), nil
}

// stateOf reads the answer to srvr.
func stateOf(answer string) string {
	switch {
	case strings.Contains(answer, "Mode: read-only"):
		return stateReadOnly
	case strings.Contains(answer, "Mode: "):
		return stateServing
	case strings.Contains(answer, "not currently serving"):
		return stateNoQuorum
	default:
		return stateForbidden
	}
}

func stateText(state string, err error) string {
	switch {
	case state == stateReadOnly:
		return "the server is read-only: it has lost the others of its ensemble; bring them back"
	case state == stateNoQuorum:
		return "the server serves nobody: the ensemble has no leader; bring back enough of its servers for a majority"
	case err != nil:
		return connectionText(err)
	default:
		return "the server began no session in time"
	}
}

// connectionText says why there is no connection, and what to do where TLS is the reason.
func connectionText(err error) string {
	untrusted, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	network, isNetwork := errors.AsType[*net.OpError](err)
	failed, isHandshake := errors.AsType[*handshakeError](err)
	switch {
	case isUntrusted:
		return "the server's certificate is not trusted: " + untrusted.Err.Error() + "; correct ca_file, tls_server_name or the certificate"
	case isNetwork && network.Op == "remote error":
		return "the server refuses the TLS connection (" + network.Err.Error() + "): check cert_file and key_file, and the server's ssl.trustStore"
	case isHandshake:
		return "the TLS handshake failed (" + failed.err.Error() + "): the port must be the server's secureClientPort"
	}
	return err.Error()
}

// fourLetters sends one of ZooKeeper's four letter words.
func (c *client) fourLetters(ctx context.Context, addr, word string) (string, error) {
	conn, err := dialServer(ctx, addr, c.login.TLS)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	if len(answer) > 0 {
		err = nil
	}
	return string(answer), err
}
