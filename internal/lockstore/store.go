package lockstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// Store is the connection to a target's lock store.
type Store interface {
	// Address is what the target's URL says.
	Address() Address
	// Topology is how its servers belong together, as far as is known; "" of stores other than
	// Redis.
	Topology() locksteward.Mode
	// Source returns what reads it. It does no I/O.
	Source(Options) (source.Source, error)
	// Ping asks the servers for a sign of life, over the connections that are open.
	Ping(context.Context) error
	// ExcessRights returns a warning of a login that may do more than read; "" for one that may
	// not, and where it is not known.
	ExcessRights(context.Context) (string, error)
	// Files checks the files of the credentials, and returns how each stands.
	Files() []credfile.File
	// ServerCertificateEnds is when the first certificate ends that a server showed; false if none did.
	ServerCertificateEnds() (time.Time, bool)
	// Explain says in one sentence what an error of the store means, and what to do.
	Explain(error) string
	// Close ends all connections.
	Close() error
}

// Options are the options of [Store.Source].
type Options struct {
	Log    *zap.Logger
	Digest locksteward.DigestKey
	// Redis, Pace, Unpaced and Hosts are those of [redis.Options]; other stores have bounds of
	// their own.
	Redis   redis.Config
	Pace    pace.Config
	Unpaced bool
	Hosts   *pace.Hosts
	// Tables are lock tables of a database beside those that are known.
	Tables []sqlsource.Table
	// Placeholder reports whether a release put a placeholder in a lock's place; it may be nil.
	Placeholder func(key, requestID string) bool
}

// ReleaserOptions are the options of [NewReleaser].
type ReleaserOptions struct {
	// Digest is the key of the digests in evidence.
	Digest locksteward.DigestKey
	// MetaPrefixes are where a Redis keeps what belongs to locks; none is the default.
	MetaPrefixes []string
	// Tables are as in [Options].
	Tables []sqlsource.Table
}

// Validate reports all that is wrong with how a target is reached, each beginning with its
// key in the configuration. It reads the files, and connects to nothing.
func Validate(cfg connect.Config) error {
	a, err := Parse(cfg.URL)
	if err != nil {
		_, files := cfg.Opened()
		return errors.Join(fmt.Errorf("url: %w", err), files)
	}
	if a.Kind == Redis {
		return cfg.Validate()
	}
	_, err = cfg.Opened()
	if !a.TLS && (cfg.CAFile != "" || cfg.CertFile != "" || cfg.KeyFile != "" || cfg.ServerName != "" || cfg.MinVersion != "") {
		err = errors.Join(err, fmt.Errorf("url: TLS settings are given but %s does not use TLS; write %s", a, schemes[schemeOf(a)].encrypted))
	}
	if len(cfg.AddrMap) > 0 {
		err = errors.Join(err, fmt.Errorf("addr_map: only Redis uses it, remove it from this target"))
	}
	if cfg.SentinelUsername != "" || cfg.SentinelPasswordFile != "" {
		err = errors.Join(err, fmt.Errorf("sentinel_username: only redis+sentinel:// uses it, remove it and sentinel_password_file from this target"))
	}
	return err
}

// Open returns the store of a target. It does no I/O but to read the files of cfg, unless they
// were read ([connect.Config.Opened]).
func Open(cfg connect.Config) (Store, error) {
	a, err := Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if a.Kind == Redis {
		return openRedis(a, cfg)
	}
	return openOther(a, cfg)
}

// NewReleaser returns what releases locks of a target, with the credentials of cfg. It does no
// I/O.
func NewReleaser(cfg connect.Config, opts ReleaserOptions) (source.Releaser, error) {
	a, err := Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if a.Kind == Redis {
		return newRedisReleaser(cfg, opts)
	}
	login, err := login(a, cfg)
	if err != nil {
		return nil, err
	}
	return schemes[schemeOf(a)].releaser(login, opts)
}

// Reach asks the servers of a target for a sign of life over connections that it makes and
// closes. Its error says what to do.
func Reach(ctx context.Context, cfg connect.Config) error {
	a, err := Parse(cfg.URL)
	if err != nil {
		return err
	}
	if a.Kind == Redis {
		if err := connect.Reach(ctx, cfg); err != nil {
			return errors.New(connect.Explain(err))
		}
		return nil
	}
	s, err := openOther(a, cfg)
	if err != nil {
		return err
	}
	if _, err = s.Source(Options{Log: zap.NewNop()}); err != nil {
		return errors.Join(err, s.Close())
	}
	if err = s.Ping(ctx); err != nil {
		err = errors.New(s.Explain(err))
	}
	return errors.Join(err, s.Close())
}

// Facts returns what rules need to know of the library called name, in whichever store; zero
// for one that is not known.
func Facts(name string) locksteward.LibraryFacts {
	if _, known := formats.Get(name); known {
		return formats.Facts(name)
	}
	return sqlsource.Facts(name)
}
