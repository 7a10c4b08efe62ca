package zksource

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

// Where servers take clients, without TLS and with it.
const defaultPort, defaultTLSPort = "2181", "2281"

// Schemes are those of the URLs of a ZooKeeper, without TLS and with it.
var Schemes = []string{"zookeeper", "zookeeper+tls"}

// spec is what a target's URL says.
type spec struct {
	tls     bool
	servers []string // host:port
	chroot  string   // "" or a path
	user    string
	// admin are the URLs of the servers' admin servers, which say from where a session's client
	// is connected; none unless admin_port is given.
	admin []string
}

// parseURL reads zookeeper://[user@]host[:port],…[/chroot][?admin_port=8080]; zookeeper+tls:// is
// the same with TLS.
func parseURL(raw string) (spec, error) {
	fail := func(what string) (spec, error) {
		return spec{}, fmt.Errorf("url: %s; write zookeeper://host1:2181,host2:2181 with /chroot behind it if there is one: %w", what, locksteward.ErrInvalid)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !slices.Contains(Schemes, scheme) {
		return fail("must begin with zookeeper:// or, with TLS, zookeeper+tls://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") {
		return fail("must have no #")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fail("what follows ? is not admin_port=PORT")
	}
	for key := range values {
		if key != "admin_port" {
			return fail(fmt.Sprintf("parameter %q is not known, only admin_port is", key))
		}
	}
	admin := values.Get("admin_port")
	if n, err := strconv.ParseUint(admin, 10, 16); values.Has("admin_port") && (err != nil || n == 0) {
		return fail(fmt.Sprintf("admin_port=%q is no port, the usual one is 8080", admin))
	}
	s := spec{tls: scheme == "zookeeper+tls"}
	hosts, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
		user, err := url.PathUnescape(hosts[:i])
		if err != nil {
			return fail("the user is not escaped as in a URL")
		}
		if strings.Contains(hosts[:i], ":") {
			return fail("must have no password: it has a setting of its own")
		}
		s.user, hosts = user, hosts[i+1:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), defaultPort
			if s.tls {
				port = defaultTLSPort
			}
		}
		if n, err := strconv.ParseUint(port, 10, 16); name == "" || strings.ContainsAny(name, " []") || err != nil || n == 0 {
			return fail(fmt.Sprintf("%q is no host and port", host))
		}
		s.servers = append(s.servers, net.JoinHostPort(name, port))
		if admin != "" {
			s.admin = append(s.admin, "http://"+net.JoinHostPort(name, admin))
		}
	}
	path, err = url.PathUnescape(strings.TrimRight(path, "/"))
	if err != nil {
		return fail("the chroot is not escaped as in a URL")
	}
	if path != "" {
		s.chroot = "/" + path
	}
	return s, nil
}

// String is how the target is called in readings: all its servers, since any of them may answer.
func (s spec) String() string { return strings.Join(s.servers, ",") + s.chroot }
