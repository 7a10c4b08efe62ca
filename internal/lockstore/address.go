package lockstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// Kind is a kind of lock store: the value of the metrics label `source`.
type Kind string

// Redis is the kind of which scripts, keyspace notifications and heartbeats are known.
const Redis Kind = "redis"

// Address is the URL of a target, taken apart.
type Address struct {
	Kind Kind
	// Mode and DB are how a Redis is deployed and which of its databases is read; "" and 0 of
	// other stores.
	Mode locksteward.Mode
	DB   int
	// Hosts are host:port of each server that the URL names, or the path of a socket.
	Hosts []string
	// Name is what else distinguishes two targets of the same servers: Sentinel's name of a master,
	// a database, a directory.
	Name string
	// Username and Password are the URL's own; HasPassword says that it has one.
	Username    string
	Password    locksteward.Secret
	HasPassword bool
	// TLS says that connections are encrypted and the server's certificate is checked.
	TLS bool

	text string
}

// String returns the URL without user and password.
func (a Address) String() string { return a.text }

// Parse takes the URL of a target apart. Its errors never show a password.
func Parse(raw string) (Address, error) {
	raw = strings.TrimSpace(raw)
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		// The text may be anything, a password included: it is not shown.
		return Address{}, fmt.Errorf("no scheme; %s", schemeHelp())
	}
	scheme = strings.ToLower(scheme)
	if s, other := schemes[scheme]; other {
		return s.parse(scheme, rest)
	}
	if !slices.Contains(connect.Schemes(), scheme) {
		return Address{}, fmt.Errorf("unknown scheme %q; %s", scheme, schemeHelp())
	}
	spec, err := connect.Parse(raw)
	if err != nil {
		return Address{}, err
	}
	a := Address{
		Kind: Redis, Mode: spec.Mode, DB: spec.DB, Name: spec.MasterName, Username: spec.Username, Password: spec.Password,
		HasPassword: spec.HasPassword, TLS: spec.TLS, Hosts: spec.Addrs, text: spec.String(),
	}
	return a, nil
}

// schemeHelp says which URLs there are.
func schemeHelp() string {
	var examples []string
	for _, s := range schemes {
		examples = append(examples, s.example)
	}
	slices.Sort(examples)
	return connect.SchemeHelp + ", " + strings.Join(slices.Compact(examples), ", ")
}

// parse parses the rest of a URL of a store other than Redis.
func (s scheme) parse(name, rest string) (Address, error) {
	bad := func(format string, args ...any) (Address, error) {
		return Address{}, fmt.Errorf("%s url: %s; write %s", name, fmt.Sprintf(format, args...), s.example)
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(rest, "#") {
		return bad("a '#' must be written %%23")
	}
	if strings.Contains(path, "@") {
		return bad("'/' in user or password must be written %%2F, '@' in a name %%40")
	}
	a := Address{Kind: s.kind, TLS: s.tls}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if err := a.setUser(authority[:at]); err != nil {
			return bad("%s", err)
		}
		authority = authority[at+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		addr, err := hostPort(host, s.port)
		if err != nil {
			return bad("%s", err)
		}
		a.Hosts = append(a.Hosts, addr)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return bad("what follows '?' is not key=value")
	}
	for key := range values {
		if !slices.Contains(s.parameters, key) {
			return bad("parameter %q is not allowed here", key)
		}
	}
	if text := values.Get("tls"); values.Has("tls") && text != "true" && text != "false" {
		return bad("tls=%s is not allowed: tls=true checks the server's certificate, without tls the connection is not encrypted", text)
	}
	if values.Get("sslmode") == "verify-full" || values.Get("sslmode") == "verify-ca" || values.Get("tls") == "true" {
		a.TLS = true
	}
	if a.Name, err = url.PathUnescape(path); err != nil {
		return bad("what follows the host has a bad %% escape")
	}
	if s.needsName != "" && a.Name == "" {
		return bad("%s is missing", s.needsName)
	}
	a.text = name + "://" + strings.Join(a.Hosts, ",")
	if path != "" {
		a.text += "/" + path
	}
	if hasQuery {
		a.text += "?" + query
	}
	if socket := values.Get("socket"); socket != "" {
		a.Hosts = []string{socket}
	}
	return a, nil
}

func (a *Address) setUser(userinfo string) error {
	user, password, has := strings.Cut(userinfo, ":")
	user, errUser := url.PathUnescape(user)
	password, errPassword := url.PathUnescape(password)
	if errUser != nil || errPassword != nil {
		return errors.New("user or password has a bad % escape: write % as %25")
	}
	a.Username, a.Password = user, locksteward.Secret(password)
	a.HasPassword = has && password != ""
	return nil
}

// hostPort returns host:port for host, host:port, [v6] or [v6]:port.
func hostPort(text, port string) (string, error) {
	host := text
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	} else if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	} else if strings.Contains(text, ":") {
		return "", fmt.Errorf("host %q is not host:port: an IPv6 address is written [::1]", text)
	}
	if host == "" {
		return "", errors.New("a host is empty")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("the port of %q must be 1 to 65535", host)
	}
	return net.JoinHostPort(host, port), nil
}
