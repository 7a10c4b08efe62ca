package testredis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const replicaTimeout = 20 * time.Second

// StartReplica starts a replica of master and returns when it has the master's
// data. The replica takes over TLS and ACL users from the master; opts come on
// top.
func StartReplica(t testing.TB, master *Server, opts ...Option) *Server {
	t.Helper()
	need(t)
	if master.opts.socket {
		t.Fatalf("start replica: the master has no port")
	}
	base := []Option{WithConfig(master.followLines()...), WithACL(master.opts.acl...)}
	if master.opts.tls {
		base = append(base, WithTLS())
	}
	r := start(t, collect(append(base, opts...)))
	r.awaitFollowing(master)
	return r
}

// followLines returns what a replica of s has in its configuration.
func (s *Server) followLines() []string {
	user, password := s.opts.login()
	lines := []string{
		fmt.Sprintf("replicaof 127.0.0.1 %d", s.proc.Port()),
		"repl-timeout 10",
	}
	if user != "" {
		lines = append(lines, "masteruser "+user)
	}
	if password != "" {
		lines = append(lines, "masterauth "+password)
	}
	return lines
}

// awaitFollowing waits until both sides call the link up.
func (s *Server) awaitFollowing(master *Server) {
	s.t.Helper()
	mine, theirs := redis.NewClient(s.Options()), redis.NewClient(master.Options())
	defer mine.Close()
	defer theirs.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), replicaTimeout)
	defer cancel()
	online := fmt.Sprintf("port=%d,state=online", s.proc.Port())
	Eventually(s.t, replicaTimeout, func() bool {
		here, err := mine.Info(ctx, "replication").Result()
		if err != nil || !strings.Contains(here, "master_link_status:up") {
			return false
		}
		there, err := theirs.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(there, online)
	}, fmt.Sprintf("replica %s follows %s", s.Addr(), master.Addr()))
}
