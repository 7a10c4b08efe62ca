package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/reload"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

const (
	maxBody         = 1 << 20
	maxHeader       = 16 << 10
	shutdownTimeout = 10 * time.Second
	// changeTimeout bounds a change whose client went away.
	changeTimeout = time.Minute
)

// Server is the console listener.
type Server struct {
	log  *zap.Logger
	cfg  Config
	deps Deps

	listener      net.Listener
	users         atomic.Pointer[users.Set]
	tls           *credfile.Set // nil: no TLS
	authenticator *signin.Authenticator
	streams       *streams
	provider      provider // nil: none is configured
}

// NewServer validates the configuration, reads the users, and listens. Close the
// server by [Server.Run]; if Run is never called, call [Server.Close].
func NewServer(log *zap.Logger, cfg Config, deps Deps) (*Server, error) {
	return newServer(log, cfg, deps, time.Now)
}

// newServer is NewServer with the clock that sign-ins go by.
func newServer(log *zap.Logger, cfg Config, deps Deps, now func() time.Time) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := deps.check(); err != nil {
		return nil, err
	}
	set, cert, err := cfg.load()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w: is another agent running? choose another console.listen", err)
	}
	// localhost is what the resolver says it is.
	if tcp, ok := listener.Addr().(*net.TCPAddr); cfg.open(set) && (!ok || !tcp.IP.IsLoopback()) {
		return nil, errors.Join(
			fmt.Errorf("listen: %q became %s, which is not loopback, and %q has no users", cfg.Listen, listener.Addr(), cfg.UsersFile),
			listener.Close())
	}
	s := &Server{log: log, cfg: cfg, deps: deps, listener: listener, tls: cert, streams: newStreams()}
	s.users.Store(set)
	if s.authenticator, err = signin.New(log, cfg.SignIn, s.users.Load, deps.Sessions, now); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if s.provider, err = newProvider(cfg.SignIn.OIDC, now); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	for _, w := range set.Warnings() {
		log.Warn("users file", zap.String("users_file", cfg.UsersFile), zap.String("warning", w))
	}
	return s, nil
}

// Addr returns host:port that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the address of the overview page.
func (s *Server) URL() string {
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + s.Addr() + "/"
}

// Close frees the address of a server that never runs. After Run, which did it
// already, it does nothing.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close console: %w", err)
	}
	return nil
}

// ReloadUsers reads the users file again and swaps it, or returns an error and
// changes nothing: see [Server.PrepareUsers].
func (s *Server) ReloadUsers() error {
	users, err := s.PrepareUsers()
	if err == nil {
		users.Commit()
	}
	return err
}

// PrepareUsers reads the users file again and changes nothing; Commit swaps it. A file that is gone, empty or without users does not open a console
// that was closed: that is an error. So is a certificate that cannot be used as it is
// now: else it counts from its change on, without a reload.
func (s *Server) PrepareUsers() (reload.Prepared, error) {
	set, _, err := s.cfg.load()
	if err == nil && s.tls != nil {
		err = s.tls.Refused()
	}
	if err != nil {
		return nil, err
	}
	if s.cfg.open(set) && !s.cfg.open(s.users.Load()) {
		return nil, fmt.Errorf("users_file: %q has no users any more; without users everybody on this machine can read the console: "+
			"restore the file, or restart the agent if that is intended", s.cfg.UsersFile)
	}
	return reload.Funcs{OnCommit: func() { s.users.Store(set) }}, nil
}

// Run serves until ctx is done, lets requests that were begun finish for a
// bounded time, and returns nil; or an error if it cannot serve.
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      changeTimeout + 10*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          zap.NewStdLog(s.log.Named("http")),
	}
	srv.RegisterOnShutdown(s.streams.close)
	served := make(chan error, 1)
	go func() {
		if s.tls == nil {
			served <- srv.Serve(s.listener)
			return
		}
		srv.TLSConfig = s.tls.Server("h2", "http/1.1")
		served <- srv.ServeTLS(s.listener, "", "")
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve console: %w", err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := srv.Shutdown(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("console requests cut off at shutdown")
		err = srv.Close()
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	if err != nil {
		return fmt.Errorf("stop console: %w", err)
	}
	return nil
}
