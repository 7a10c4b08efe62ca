package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// server is the Redis that the demo plays on.
type server struct {
	connect connect.Config
	scene   scene
	// what says which server it is, note what is special about it.
	what, note string
	// share is how much of the server's time sweeps may take.
	share string
	// close ends a server of the demo's own.
	close func() error
}

// A server of the demo's own has nothing else to do. On another, sweeps may still
// take more than usual, for as long as somebody watches.
const (
	ownShare   = "80%"
	guestShare = "10%"
)

// startServer uses the caller's server, or starts one.
func startServer(ctx context.Context, opts Options) (*server, error) {
	var s *server
	var err error
	switch {
	case opts.Redis != nil:
		s = guestServer(*opts.Redis)
	case opts.Embedded:
		s, err = startEmbedded("asked for with --embedded")
	default:
		s, err = startProcess(ctx)
		if errors.Is(err, redisproc.ErrNotInstalled) {
			s, err = startEmbedded("this machine has no redis-server")
		}
	}
	if err != nil {
		return nil, err
	}
	version, err := greet(ctx, s.connect)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s cannot be used: %s", s.what, connect.Explain(err)), s.close())
	}
	if version != "" {
		s.what = strings.Replace(s.what, "redis-server", "redis-server "+version, 1)
	}
	return s, nil
}

func startProcess(ctx context.Context) (*server, error) {
	p, err := redisproc.Start(ctx, redisproc.Options{})
	if err != nil {
		return nil, err
	}
	return &server{
		connect: connect.Config{URL: "redis://" + p.Addr() + "/0"},
		scene:   ownScene(),
		what:    "redis-server on " + p.Addr(),
		note:    "started for this demo, gone at its end",
		share:   ownShare,
		close:   p.Close,
	}, nil
}

func guestServer(cfg connect.Config) *server {
	s := &server{connect: cfg, scene: guestScene(), what: "your server", share: guestShare, close: func() error { return nil }}
	// The first contact reports what cannot be parsed.
	if spec, err := connect.Parse(cfg.URL); err == nil {
		s.what = "redis-server at " + spec.String()
	}
	s.note = "the demo writes only keys that begin with " + s.scene.prefix + ", removed at its end; everything else is only looked at"
	return s
}

// greet makes sure that the server answers and returns its version, "" where it
// does not tell.
func greet(ctx context.Context, cfg connect.Config) (string, error) {
	conn, rdb, err := dial(ctx, cfg, "demo")
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // Nothing is buffered in it.
	if err := rdb.Ping(ctx).Err(); err != nil {
		return "", err
	}
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return "", nil // An ACL may forbid it.
	}
	_, rest, _ := strings.Cut(info, "redis_version:")
	version, _, _ := strings.Cut(rest, "\r\n")
	return version, nil
}

// dial opens a connection of its own, as another program would.
func dial(ctx context.Context, cfg connect.Config, name string) (*connect.Conn, redis.UniversalClient, error) {
	cfg.ClientName = "locksteward-" + name
	conn, err := connect.Open(cfg)
	if err != nil {
		return nil, nil, err
	}
	// A URL may lead to one node of a Cluster: this finds out.
	if _, err := conn.Masters(ctx); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, conn.Universal(), nil
}

// tidyTimeout bounds what is done after the demo's context has ended.
const tidyTimeout = 5 * time.Second

// tidy removes the demo's keys from a server of the caller's, each by its name.
func (s *server) tidy(ctx context.Context) error {
	if s.scene == ownScene() {
		return nil // They go with the server.
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	if err := s.removeKeys(ctx); err != nil {
		return fmt.Errorf("remove the demo's keys: %s; they begin with %s: remove them with redis-cli --scan --pattern '*%s*'",
			connect.Explain(err), s.scene.prefix, s.scene.prefix)
	}
	return nil
}

func (s *server) removeKeys(ctx context.Context) error {
	conn, rdb, err := dial(ctx, s.connect, "demo")
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // Nothing is buffered in it.
	masters, err := conn.Masters(ctx)
	if err != nil {
		return err
	}
	for _, m := range masters {
		keys := m.Client.Scan(ctx, 0, "*"+s.scene.prefix+"*", 1000).Iterator()
		for keys.Next(ctx) {
			if !s.scene.wrote(keys.Val()) {
				continue
			}
			if err := rdb.Del(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		if err := keys.Err(); err != nil {
			return err
		}
	}
	return nil
}

// wrote says whether the demo made a key: one of its own, or the record of a
// release that the agent keeps beside it.
func (s scene) wrote(key string) bool {
	return s.owns(key) || strings.HasPrefix(key, "locksteward:exec:{"+s.prefix)
}
