package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// bed is the server that all contestants use, and a connection of our own to
// ask it what that cost.
type bed struct {
	settings
	server *redisproc.Proc
	admin  *redis.Client
	stderr io.Writer
	serial int
}

// newBed starts a server on loopback TCP that saves nothing.
func newBed(ctx context.Context, s settings, stderr io.Writer) (*bed, error) {
	server, err := redisproc.Start(ctx, redisproc.Options{})
	if err != nil {
		return nil, err
	}
	return &bed{
		settings: s,
		server:   server,
		admin:    redis.NewClient(&redis.Options{Addr: server.Addr()}),
		stderr:   &shared{w: stderr},
	}, nil
}

// shared is a writer for us and for what child processes say.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

func (b *bed) close() error { return errors.Join(b.admin.Close(), b.server.Close()) }

// say writes a line of progress.
func (b *bed) say(format string, args ...any) { fmt.Fprintf(b.stderr, format+"\n", args...) }

// name returns a lock's name that was not used before.
func (b *bed) name() string {
	b.serial++
	return fmt.Sprintf("bench:%d", b.serial)
}

func (b *bed) open(v variant) (locker, error) {
	l, err := v.open(target{addr: b.server.Addr(), ttl: b.TTL, pool: b.Pool})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", v.name, err)
	}
	return l, nil
}

// cpu returns what the server has used of its cores since its start.
func (b *bed) cpu(ctx context.Context) (time.Duration, error) {
	info, err := b.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, field := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			return 0, fmt.Errorf("read server CPU: field %s: %w", field, err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second)), nil
}

// calls returns how often the server has executed each command, those inside
// scripts included.
func (b *bed) calls(ctx context.Context) (map[string]int, error) {
	info, err := b.info(ctx, "commandstats")
	if err != nil {
		return nil, err
	}
	calls := map[string]int{}
	for field, value := range info {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if calls[name], err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("read command counts: %s: %w", name, err)
		}
	}
	return calls, nil
}

// info returns one section of INFO as fields.
func (b *bed) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := b.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("ask server for %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
