package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/credfile"
)

// defaultHealthURL is the metrics listener of an agent beside this program, unless listenEnv names another.
const defaultHealthURL = "http://127.0.0.1:10121"

// listenEnv is the variable of metrics.listen: an agent and its health check often share their environment.
const listenEnv = "LOCKSTEWARD_METRICS_LISTEN"

func healthCommand(p *program) *cobra.Command {
	var (
		at      string
		ready   bool
		timeout time.Duration
		files   credfile.Files
	)
	c := &cobra.Command{
		Use:   "health",
		Short: "Check whether an agent runs, or is ready",
		Long: `Health requests /-/healthy, or with --ready /-/ready, from the metrics listener of an
agent, and exits with 0 if the answer is yes. It is for images without a shell or
curl. It reads no configuration, so an invalid one does not make a running agent look
dead; without --url it requests the address of ` + listenEnv + `.

An agent is ready when it can answer for what it shows. It stays ready while a target
is down or being swept for the first time: the output names such targets.

The certificate of a loopback address is only verified with --ca-file; nothing secret
is sent. A listener that asks for a login counts as running; its readiness cannot be
seen without a login. --cert-file and --key-file are sent to a listener that asks for a
certificate.`,
		Example: `  locksteward health
  locksteward health --ready --url https://127.0.0.1:10121
  locksteward health --url https://127.0.0.1:10121 --cert-file me.pem --key-file me.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen := os.Getenv(listenEnv); listen != "" && !cmd.Flags().Changed("url") {
				var err error
				if at, err = urlOfListener(listen); err != nil {
					return err
				}
			}
			u, err := url.Parse(at)
			if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
				return usagef("--url: must be like %s, without a login", defaultHealthURL)
			}
			if timeout <= 0 {
				return usagef("--timeout: got %s, must be more than 0s", timeout)
			}
			set, err := credfile.Open(files, credfile.Keys{CA: "--ca-file", Cert: "--cert-file", Key: "--key-file"})
			if err != nil {
				return usagef("%w", err)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("no answer within %s", timeout))
			defer cancel()
			text, err := askHealth(ctx, u, ready, set)
			if err != nil {
				if cause := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) && cause != nil {
					err = cause
				}
				return fmt.Errorf("ask agent at %s: %w", u.Redacted(), err)
			}
			// The first line is the answer, each further one what to know beside it.
			_, err = fmt.Fprintf(p.stdout, "agent at %s: %s\n", u.Redacted(), strings.ReplaceAll(text, "\n", "\n  "))
			return err
		},
	}
	c.Flags().StringVar(&at, "url", defaultHealthURL, "metrics listener of the agent (or "+listenEnv+")")
	c.Flags().BoolVar(&ready, "ready", false, "check readiness: what the store knows is read, the database of replicas answers")
	c.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "longest wait for the answer")
	c.Flags().StringVar(&files.CA, "ca-file", "", "PEM file of the CA that signed the listener's certificate")
	c.Flags().StringVar(&files.Cert, "cert-file", "", "PEM file of a client certificate, if the listener asks for one")
	c.Flags().StringVar(&files.Key, "key-file", "", "PEM file of its key")
	return c
}

// urlOfListener returns the URL of a listener that is on this machine, of its address as metrics.listen has it.
func urlOfListener(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", usagef("%s: got %q, write an address such as 127.0.0.1:10121, or give --url", listenEnv, listen)
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// askHealth returns the agent's word for being well; anything else is an error.
func askHealth(ctx context.Context, base *url.URL, ready bool, files *credfile.Set) (string, error) {
	path := "/-/healthy"
	if ready {
		path = "/-/ready"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: files.Client("", tls.VersionTLS12)}
	if files.CA == nil && onLoopback(base.Hostname()) {
		transport.TLSClientConfig.InsecureSkipVerify = true // see Long
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		// With TLS 1.3 the refusal may be lost to a request that is being written.
		cut := errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
		if strings.Contains(err.Error(), "remote error: tls: ") || cut && base.Scheme == "https" {
			err = fmt.Errorf("%w: it asks for a certificate that it trusts: give --cert-file FILE and --key-file FILE", err)
		}
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case resp.StatusCode == http.StatusOK:
		return text, nil
	case resp.StatusCode == http.StatusUnauthorized && !ready:
		return "ok: it asks for a login", nil
	case resp.StatusCode == http.StatusUnauthorized:
		return "", errors.New("it asks for a login (metrics.web_config_file), so its readiness is unknown; run without --ready")
	case resp.StatusCode == http.StatusServiceUnavailable && ready:
		return "", errors.New(text)
	case resp.StatusCode == http.StatusBadRequest && base.Scheme == "http" && strings.Contains(text, "HTTPS"):
		return "", errors.New("it speaks TLS; use --url https://…")
	default:
		return "", fmt.Errorf("it answered %s; is this the metrics listener?", resp.Status)
	}
}

// onLoopback says whether a host is this machine whatever any name server says.
func onLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
