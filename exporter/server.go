package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/locksteward/locksteward/internal/loopback"
)

// Limits of the listener. A scrape is answered in milliseconds, so a client that takes
// longer to ask or to read is broken or hostile.
const (
	readTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
	maxScrapes      = 40
	shutdownTimeout = 3 * time.Second
)

// Server is the listener for metrics, health and readiness. Everything on it
// only reads.
type Server struct {
	log      *zap.Logger
	cfg      Config
	listener net.Listener
	http     *http.Server
}

// Readiness is what /-/ready answers, in words that anybody may read.
type Readiness struct {
	// Waits says why the agent is not ready; nil when it is.
	Waits error
	// Notes are what somebody who looks should know of an agent that is ready, a line
	// each.
	Notes []string
}

// NewServer listens at once, so that a taken port is an error here, and serves
// when [Server.Run] is called. Healthy is why /-/healthy fails, nil while it does not;
// without healthy or ready the agent always is.
func NewServer(log *zap.Logger, cfg Config, e *Exporter, healthy func() error, ready func() Readiness) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log = log.Named("metrics")
	handler, err := newHandler(log, e, healthy, ready)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w; write another address as metrics.listen", err)
	}
	errorLog, err := zap.NewStdLogAt(log, zap.WarnLevel)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("log of the metrics server: %w", err), listener.Close())
	}
	return &Server{
		log:      log,
		cfg:      cfg,
		listener: listener,
		http: &http.Server{
			Handler:           namedHosts(handler, listener.Addr(), cfg.AllowedHosts),
			ErrorLog:          errorLog,
			ReadHeaderTimeout: readTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
		},
	}, nil
}

// Addr is the address that is listened on; its port is known even for ":0".
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close gives the address back when Run was never called; after Run it does
// nothing.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close metrics listener: %w", err)
	}
	return nil
}

// Run serves until ctx is done, lets running scrapes end for at most 3 s, and
// returns after all its goroutines ended. It returns nil for an orderly stop.
func (s *Server) Run(ctx context.Context) error {
	var (
		wg      sync.WaitGroup
		stopErr error
		served  = make(chan struct{})
	)
	wg.Go(func() {
		select {
		case <-ctx.Done():
			stopErr = s.stop(ctx)
		case <-served:
		}
	})
	log := slog.New(zapslog.NewHandler(s.log.Core(), zapslog.WithName(s.log.Name())))
	err := web.Serve(s.listener, s.http, &web.FlagConfig{WebConfigFile: &s.cfg.WebConfigFile}, log)
	close(served)
	wg.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(fmt.Errorf("serve metrics: %w", err), s.http.Close(), s.Close())
	}
	return stopErr
}

func (s *Server) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		// A connection that never sent its request looks like a running one.
		s.log.Info("cutting connections that did not end", zap.Duration("after", shutdownTimeout))
		err = s.http.Close()
	}
	if err != nil {
		return fmt.Errorf("stop metrics server: %w", err)
	}
	return nil
}

func newHandler(log *zap.Logger, e *Exporter, healthy func() error, ready func() Readiness) (http.Handler, error) {
	landing, err := web.NewLandingPage(web.LandingConfig{
		Name:        "Locksteward",
		Description: "Monitoring and governance of Redis lock keys",
		Version:     e.build.Version,
		Profiling:   "false",
		Links: []web.LandingLinks{
			{Address: "/metrics", Text: "Metrics", Description: "for Prometheus"},
			{Address: "/-/healthy", Text: "Health", Description: "200 while the agent makes progress"},
			{Address: "/-/ready", Text: "Readiness", Description: "200 while this agent can answer for what it shows"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("build landing page: %w", err)
	}
	scrapeErrors, err := zap.NewStdLogAt(log, zap.ErrorLevel)
	if err != nil {
		return nil, fmt.Errorf("log of the metrics handler: %w", err)
	}
	// A registry of its own, so that several servers may show one Exporter.
	own := prometheus.NewRegistry()
	metrics := promhttp.HandlerFor(prometheus.Gatherers{e.registry, own}, promhttp.HandlerOpts{
		ErrorLog:            scrapeErrors,
		ErrorHandling:       promhttp.HTTPErrorOnError,
		Registry:            own,
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
		// Scrapes at the same time share one gathering.
		CoalesceGather: true,
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		if healthy != nil {
			if err := healthy(); err != nil {
				answer(log, w, http.StatusServiceUnavailable, "not healthy:\n"+err.Error())
				return
			}
		}
		answer(log, w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if ready == nil {
			answer(log, w, http.StatusOK, "ready")
			return
		}
		now := ready()
		if now.Waits != nil {
			answer(log, w, http.StatusServiceUnavailable, "not ready:\n"+now.Waits.Error())
			return
		}
		answer(log, w, http.StatusOK, strings.Join(append([]string{"ready"}, now.Notes...), "\n"))
	})
	mux.Handle("GET /{$}", landing)
	return mux, nil
}

// namedHosts answers requests that name this machine or an allowed host, if the
// listener is on a loopback address or some hosts are allowed.
func namedHosts(next http.Handler, at net.Addr, allowed []string) http.Handler {
	if tcp, ok := at.(*net.TCPAddr); len(allowed) == 0 && !(ok && tcp.IP.IsLoopback()) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := loopback.HostOf(r)
		if !loopback.Names(host) && !slices.ContainsFunc(allowed, func(one string) bool { return strings.EqualFold(one, host) }) {
			http.Error(w, "this listener does not answer for that host: use http://127.0.0.1, or add the host to metrics.allowed_hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(log *zap.Logger, w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if _, err := fmt.Fprintln(w, text); err != nil {
		log.Debug("client left before the answer", zap.Error(err))
	}
}
