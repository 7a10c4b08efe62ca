package testpg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// shared is the server that the tests of this binary have in common. It runs
// while a test uses it.
type shared struct {
	mu    sync.Mutex
	proc  *proc
	users int
	made  int
}

var common shared

// Database returns the DSN of a fresh, empty database on a server that the
// tests of this binary share, for a user with all rights and no password. The
// server is gone with its last test.
func Database(t testing.TB) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	p, name, err := common.enter(ctx, need(t))
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		keepLog(t, p)
		if err := common.leave(); err != nil {
			t.Errorf("%v", err)
		}
	})
	if err := query(ctx, p.dsn("postgres"), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("create database: %v", err)
	}
	return p.dsn(name)
}

// enter counts a user in and names a database for it.
func (s *shared) enter(ctx context.Context, bin string) (*proc, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		p, err := newProc(ctx, bin)
		if err != nil {
			return nil, "", err
		}
		s.proc = p
	}
	s.users++
	s.made++
	return s.proc, fmt.Sprintf("test_%d", s.made), nil
}

func (s *shared) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	p := s.proc
	s.proc = nil
	return p.close()
}

// query runs one statement on a connection of its own.
func query(ctx context.Context, dsn, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}
