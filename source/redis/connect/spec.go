package connect

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

// Default ports.
const (
	defaultPort         = "6379"
	defaultSentinelPort = "26379"
)

// Spec is a target's URL, taken apart.
type Spec struct {
	Mode locksteward.Mode
	TLS  bool
	// Addrs are host:port of the server, of Cluster nodes or of Sentinels; for a
	// socket its path alone, with Socket set.
	Addrs  []string
	Socket bool
	// MasterName is Sentinel's name of the master.
	MasterName string
	DB         int
	Username   string
	// Password is the one in the URL; see HasPassword.
	Password locksteward.Secret
	// HasPassword says that the URL itself holds a password, which a command
	// line must refuse since others can read it.
	HasPassword bool
}

// schemes maps what a URL may begin with to what it means.
var schemes = map[string]Spec{
	"redis":           {Mode: locksteward.ModeStandalone},
	"rediss":          {Mode: locksteward.ModeStandalone, TLS: true},
	"unix":            {Mode: locksteward.ModeStandalone, Socket: true},
	"redis+cluster":   {Mode: locksteward.ModeCluster},
	"rediss+cluster":  {Mode: locksteward.ModeCluster, TLS: true},
	"redis+sentinel":  {Mode: locksteward.ModeSentinel},
	"rediss+sentinel": {Mode: locksteward.ModeSentinel, TLS: true},
}

// SchemeHelp says which URLs [Parse] takes.
const SchemeHelp = "write redis://host:6379/0, rediss://…, unix:///path/to/redis.sock, " +
	"redis+cluster://a:6379,b:6379 or redis+sentinel://a:26379,b:26379/mymaster"

// Schemes are those that [Parse] takes.
func Schemes() []string { return slices.Sorted(maps.Keys(schemes)) }

// Parse takes a target's URL apart. Its errors never show the password.
//
//	redis://[user[:password]@]host[:6379][/db]
//	rediss://…                                     the same over TLS
//	unix:///path/to/redis.sock[?db=1]
//	redis+cluster://a[:6379],b,c                   rediss+cluster:// over TLS
//	redis+sentinel://a[:26379],b/mymaster[/db]     rediss+sentinel:// over TLS
func Parse(raw string) (Spec, error) {
	raw = strings.TrimSpace(raw)
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		// The text may be anything, a password included: it is not shown.
		return Spec{}, fmt.Errorf("redis url: no scheme; %s", SchemeHelp)
	}
	spec, ok := schemes[strings.ToLower(scheme)]
	if !ok {
		return Spec{}, fmt.Errorf("redis url: unknown scheme %q; %s", scheme, SchemeHelp)
	}
	if strings.Contains(rest, "#") {
		return Spec{}, errors.New("redis url: a '#' must be written %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	if err := spec.setQuery(query); err != nil {
		return Spec{}, err
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(rest, '@'); at > strings.IndexByte(rest, '/') && hasPath && !spec.Socket {
		return Spec{}, errors.New("redis url: '/' in user or password must be written %2F")
	}
	if err := spec.setUser(&authority); err != nil {
		return Spec{}, err
	}
	if spec.Socket {
		if authority != "" || path == "" {
			return Spec{}, fmt.Errorf("redis url: a socket needs an absolute path, got %q; write unix:///path/to/redis.sock", authority)
		}
		name, err := url.PathUnescape("/" + path)
		if err != nil {
			return Spec{}, errors.New("redis url: the socket's path has a bad % escape")
		}
		spec.Addrs = []string{name}
		return spec, nil
	}
	if err := spec.setHosts(authority); err != nil {
		return Spec{}, err
	}
	if err := spec.setPath(strings.TrimSuffix(path, "/")); err != nil {
		return Spec{}, err
	}
	return spec, nil
}

func (s *Spec) setUser(authority *string) error {
	at := strings.LastIndexByte(*authority, '@')
	if at < 0 {
		return nil
	}
	userinfo := (*authority)[:at]
	*authority = (*authority)[at+1:]
	user, password, has := strings.Cut(userinfo, ":")
	user, errUser := url.PathUnescape(user)
	password, errPassword := url.PathUnescape(password)
	if errUser != nil || errPassword != nil {
		return errors.New("redis url: user or password has a bad % escape; write % as %25")
	}
	s.Username = user
	if has && password != "" {
		s.Password = locksteward.Secret(password)
		s.HasPassword = true
	}
	return nil
}

func (s *Spec) setHosts(authority string) error {
	port := defaultPort
	if s.Mode == locksteward.ModeSentinel {
		port = defaultSentinelPort
	}
	for host := range strings.SplitSeq(authority, ",") {
		addr, err := hostPort(host, port)
		if err != nil {
			return err
		}
		s.Addrs = append(s.Addrs, addr)
	}
	if s.Mode == locksteward.ModeStandalone && len(s.Addrs) > 1 {
		return fmt.Errorf("redis url: %d hosts for one server; write redis+cluster:// or redis+sentinel://", len(s.Addrs))
	}
	return nil
}

func (s *Spec) setPath(path string) error {
	switch s.Mode {
	case locksteward.ModeCluster:
		if path != "" && path != "0" {
			return fmt.Errorf("redis url: a Cluster has database 0 alone, got %q", path)
		}
		s.DB = 0
		return nil
	case locksteward.ModeSentinel:
		name, db, hasDB := strings.Cut(path, "/")
		name, err := url.PathUnescape(name)
		if err != nil || name == "" {
			return errors.New("redis url: no master name; write redis+sentinel://a:26379,b:26379/mymaster")
		}
		s.MasterName = name
		if hasDB {
			return s.setDB(db)
		}
		return nil
	default:
		if path == "" {
			return nil
		}
		return s.setDB(path)
	}
}

func (s *Spec) setQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("redis url: what follows '?' is not key=value")
	}
	for key, v := range values {
		if key != "db" {
			return fmt.Errorf("redis url: unknown parameter %q; only db is known", key)
		}
		if s.Mode == locksteward.ModeCluster && v[0] != "0" {
			return fmt.Errorf("redis url: a Cluster has database 0 alone, got %q", v[0])
		}
		if err := s.setDB(v[0]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) setDB(text string) error {
	db, err := strconv.Atoi(text)
	if err != nil || db < 0 {
		return fmt.Errorf("redis url: database must be a number from 0, got %q", text)
	}
	s.DB = db
	return nil
}

// hostPort returns host:port for host, host:port, [v6] or [v6]:port.
func hostPort(text, port string) (string, error) {
	text = strings.TrimSpace(text)
	host := text
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	} else if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		host = text[1 : len(text)-1]
	} else if strings.Contains(text, ":") {
		return "", fmt.Errorf("redis url: host %q is not host:port; write an IPv6 address as [::1]:6379", text)
	}
	if host == "" {
		return "", errors.New("redis url: a host is empty; " + SchemeHelp)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("redis url: port of %q must be 1 to 65535", host)
	}
	return net.JoinHostPort(host, port), nil
}

// String returns the URL without user and password; [Parse] takes it apart again.
func (s Spec) String() string {
	scheme := "redis"
	if s.TLS {
		scheme = "rediss"
	}
	switch {
	case s.Socket:
		out := "unix://" + (&url.URL{Path: s.Addrs[0]}).EscapedPath()
		if s.DB != 0 {
			out += "?db=" + strconv.Itoa(s.DB)
		}
		return out
	case s.Mode == locksteward.ModeCluster:
		return scheme + "+cluster://" + strings.Join(s.Addrs, ",")
	case s.Mode == locksteward.ModeSentinel:
		return scheme + "+sentinel://" + strings.Join(s.Addrs, ",") + "/" + url.PathEscape(s.MasterName) + "/" + strconv.Itoa(s.DB)
	default:
		return scheme + "://" + strings.Join(s.Addrs, ",") + "/" + strconv.Itoa(s.DB)
	}
}
