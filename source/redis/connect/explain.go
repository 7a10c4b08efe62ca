package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/respcheck"
)

// maxReason bounds what [Explain] passes on of an unknown error's own text.
const maxReason = 200

// serverSays maps the beginning of a server's error (without "ERR") to what it
// means and what to do.
var serverSays = []struct{ prefix, reason string }{
	{"LOADING", "the server is loading its data; wait until it is done"},
	{"NOAUTH", "the server wants a password; set password_file (command line: --server-password-file or LOCKSTEWARD_SERVER_PASSWORD)"},
	{"WRONGPASS", "the server refused user or password; check username and password_file"},
	{"invalid password", "the server refused the password; check password_file"},
	{"Client sent AUTH, but no password is set", "a password is set here but the server has none; remove password_file"},
	{"AUTH <password> called without any password configured", "a password is set here but the server has none; remove password_file"},
	{"BUSY", "a script has been running on the server for long; wait or end it with SCRIPT KILL"},
	{"MASTERDOWN", "the server is a replica whose master is down; wait for the failover or point the target at the master"},
	{"READONLY", "the server is a replica; point the target at the master"},
	{"CLUSTERDOWN", "the cluster does not serve all slots; repair it (redis-cli --cluster check)"},
	{"MISCONF", "the server cannot save its data and refuses commands; look at its log"},
	{"OOM", "the server is out of memory; look at maxmemory"},
	{"DENIED", "the server is in protected mode; set a password or a bind address there"},
	{"max number of clients reached", "the server has no connection left; raise maxclients or close some"},
	{"DB index is out of range", "the server has no such database; correct the number at the end of the URL"},
	{"MOVED", "the key has moved to another node of the cluster; it is read in the next sweep"},
	{"ASK", "the key's slot is moving to another node; it is read when that is done"},
	{"TRYAGAIN", "the key's slot is moving to another node; it is read when that is done"},
}

// tlsAlerts are what a server says of our side of a handshake, and what to do.
var tlsAlerts = []struct{ says, reason string }{
	{"expired certificate", "the server refused our certificate, which has expired; put a new one into cert_file and key_file"},
	{"unknown certificate authority", "the server does not trust the authority that signed our certificate; put one that it trusts into cert_file"},
	{"certificate required", "the server wants a client certificate; set cert_file and key_file (--server-cert-file, --server-key-file of a command)"},
	{"protocol version not supported", "the server speaks no version of TLS that is allowed here; switch on TLS 1.2 or 1.3 there, or look at tls_min_version"},
}

// Explain says in one sentence, fit for a screen, why a target cannot be read
// and what to do. It never contains a password, and is empty for nil.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	if bad, ok := errors.AsType[*respcheck.Error](err); ok {
		return "the connection to " + bad.Server + " was closed, which sent " + bad.What + "; " + lookThere
	}
	if reason := explainServer(err); reason != "" {
		return reason
	}
	if reason := explainTLS(err); reason != "" {
		return reason
	}
	if reason := explainNet(err); reason != "" {
		return reason
	}
	then := "see the server's log"
	if respcheck.Lied(err) {
		then = lookThere
	}
	text := locksteward.DisplayKey(strings.Join(strings.Fields(err.Error()), " "))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text + "; " + then
}

// lookThere is what to do about a server that answers as Redis does not.
const lookThere = "look whether a Redis server listens there, and what is between"

func explainServer(err error) string {
	if redis.HasErrorPrefix(err, "NOPERM") {
		return explainNoPerm(err)
	}
	for _, s := range serverSays {
		if redis.HasErrorPrefix(err, s.prefix) {
			return s.reason
		}
	}
	if errors.Is(err, errNoMaster) {
		return "Sentinel knows no master of that name; correct the name after the last '/' of the URL"
	}
	return ""
}

// explainNoPerm names the command that was refused: NOPERM quotes it.
func explainNoPerm(err error) string {
	e, _ := errors.AsType[redis.Error](err)
	if parts := strings.Split(e.Error(), "'"); len(parts) >= 3 {
		return "the server's ACL does not let this user run " + locksteward.DisplayKey(parts[1]) +
			"; grant what `locksteward acl` prints"
	}
	return "the server's ACL does not let this user read a key; grant what `locksteward acl` prints"
}

func explainTLS(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is signed by an authority that is not trusted here; set ca_file (--server-ca-file of a command)"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is not for " + e.Host + "; use a name that it carries"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "the server's certificate has expired or is not valid yet; renew it"
		}
		return "the server's certificate is not valid; renew it"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server does not speak TLS; write redis:// instead of rediss://"
	}
	for _, a := range tlsAlerts {
		if strings.Contains(err.Error(), "remote error: tls: "+a.says) {
			return a.reason
		}
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok || strings.Contains(err.Error(), "remote error: tls:") {
		return "the server refused the TLS handshake; set cert_file and key_file (--server-cert-file, --server-key-file of a command) if it wants a client certificate"
	}
	if _, ok := errors.AsType[*handshakeError](err); ok {
		return "the TLS handshake failed; if the server does not speak TLS write redis:// instead of rediss://"
	}
	return ""
}

func explainNet(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: no server listens there; start it or correct the address"
	case errors.Is(err, fs.ErrNotExist):
		return "the socket does not exist; start the server or correct the path"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not open the socket; give it the right to"
	case errors.Is(err, context.Canceled):
		return "it was interrupted; nothing to do"
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return "all connections are busy; raise pool_size or look why the server is slow"
	case errors.Is(err, redis.ErrClosed):
		return "the connection is closed; the agent is stopping"
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "the name " + locksteward.DisplayKey(e.Name) + " cannot be resolved; correct it or the DNS"
	}
	timeout, _ := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		timeout != nil && timeout.Timeout():
		return "no answer in time; look whether the server is overloaded, paused or behind a firewall"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the server closed the connection; if it wants TLS write rediss://, if it has too many clients raise maxclients, else look at its log"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the server; look at the network"
	}
	return ""
}
