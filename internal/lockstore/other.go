package lockstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// scheme is what the URL of a store that is not Redis begins with.
type scheme struct {
	kind Kind
	// port is what a host without one is asked at.
	port string
	// tls: the scheme itself says that connections are encrypted.
	tls bool
	// example is a URL for messages, encrypted one with TLS.
	example, encrypted string
	// needsName is what the path of the URL must name, "" if it may be empty.
	needsName string
	// parameters are those that may follow the '?'.
	parameters []string
	// open returns what reads the store, and what ends its connections.
	open     func(source.Login, Options) (reader, func() error, error)
	releaser func(source.Login, ReleaserOptions) (source.Releaser, error)
	// rights returns the statements that grant the least rights to who reads with this login, and
	// to a releaser of that name.
	rights func(ctx context.Context, l source.Login, o RightsOptions) (string, error)
	// check examines what a reader with this login can do, checkReleaser what a releaser can.
	check, checkReleaser func(ctx context.Context, l source.Login, opts ExamineOptions) []source.Check
}

// reader is a source that makes its connections itself.
type reader interface {
	source.Source
	// Ping asks a server for a sign of life.
	Ping(context.Context) error
}

// schemes are those of all stores but Redis.
var schemes = map[string]scheme{
	"postgres": postgres, "postgresql": postgres, "mysql": mysql, "mariadb": mysql, "etcd": etcd, "etcds": etcds,
	"zookeeper": zookeeper, "zookeeper+tls": zookeeperTLS,
}

// schemeOf returns the scheme of the URL that a was parsed from.
func schemeOf(a Address) string {
	name, _, _ := strings.Cut(a.text, "://")
	return name
}

// login returns how the store at a is logged in to with cfg, whose files are open.
func login(a Address, cfg connect.Config) (source.Login, error) {
	cfg, err := cfg.Opened()
	if err != nil {
		return source.Login{}, err
	}
	out := source.Login{URL: a.text, Username: cmp.Or(cfg.Username, a.Username)}
	switch {
	case cfg.PasswordFile != "" || cfg.Password != "":
		out.Password = func() (locksteward.Secret, error) { return cfg.Secret(), nil }
	case a.HasPassword:
		out.Password = func() (locksteward.Secret, error) { return a.Password, nil }
	}
	if a.TLS {
		name := cfg.ServerName
		if host, _, err := net.SplitHostPort(a.Hosts[0]); name == "" && err == nil && len(a.Hosts) == 1 {
			name = host
		}
		out.TLS = cfg.TLS(name)
	}
	return out, nil
}

// otherStore is the [Store] of all stores but Redis.
type otherStore struct {
	address Address
	cfg     connect.Config // its files are open
	reader  reader         // nil before Source
	close   func() error   // of reader

	mu      sync.Mutex
	used    uint64        // the generation of the files that connections are made with; mu guards it
	renewed chan struct{} // see Renewed; mu guards it
}

func openOther(a Address, cfg connect.Config) (*otherStore, error) {
	cfg, err := cfg.Opened()
	if err != nil {
		return nil, err
	}
	return &otherStore{address: a, cfg: cfg, used: generation(cfg.Files(false)), renewed: make(chan struct{})}, nil
}

func (s *otherStore) Address() Address         { return s.address }
func (*otherStore) Topology() locksteward.Mode { return "" }

// ExcessRights is not known of other stores.
func (*otherStore) ExcessRights(context.Context) (string, error) { return "", nil }

// ServerCertificateEnds is not known: the libraries of other stores make their connections
// themselves.
func (*otherStore) ServerCertificateEnds() (time.Time, bool) { return time.Time{}, false }

func (s *otherStore) Source(opts Options) (source.Source, error) {
	login, err := login(s.address, s.cfg)
	if err != nil {
		return nil, err
	}
	if s.reader, s.close, err = schemes[schemeOf(s.address)].open(login, opts); err != nil {
		return nil, err
	}
	return renewable{s.reader, s}, nil
}

func (s *otherStore) Ping(ctx context.Context) error {
	if s.reader == nil {
		return errors.New("nothing was opened yet")
	}
	return s.reader.Ping(ctx)
}

func (s *otherStore) Explain(err error) string {
	if s.reader == nil {
		return err.Error()
	}
	return s.reader.Explain(err)
}

func (s *otherStore) Close() error {
	if s.reader == nil {
		return nil
	}
	return s.close()
}

func (s *otherStore) Files() []credfile.File {
	files := s.cfg.Files(true)
	now := generation(files)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now != s.used {
		s.used = now
		close(s.renewed)
		s.renewed = make(chan struct{})
	}
	return files
}

func generation(files []credfile.File) (sum uint64) {
	for _, f := range files {
		sum += f.Generation
	}
	return sum
}

// renewable is a reader whose credentials are files that may change.
type renewable struct {
	reader
	store *otherStore
}

// Renewed implements [source.Source].
func (r renewable) Renewed() <-chan struct{} {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.store.renewed
}

// Kinds are all kinds of lock stores, sorted.
func Kinds() []Kind {
	kinds := map[Kind]bool{Redis: true}
	for _, s := range schemes {
		kinds[s.kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}
