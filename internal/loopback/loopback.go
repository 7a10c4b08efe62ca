// Package loopback says which hosts can be reached from this machine alone.
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Is says whether a host can be reached from this machine alone. A name other than
// localhost cannot be trusted to stay what it is.
func Is(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// HostOf returns the host that a request names, in lower case, without its port.
func HostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// Names says whether a host as a request names it is this machine: the page of a
// browser whose name was rebound to 127.0.0.1 names another.
func Names(host string) bool { return Is(host) || strings.HasSuffix(host, ".localhost") }
