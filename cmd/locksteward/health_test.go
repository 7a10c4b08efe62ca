package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthAnswers(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	answer := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, status) }
	}
	for _, tc := range []struct {
		name   string
		h      http.HandlerFunc
		tls    bool
		args   []string
		code   int
		output string
	}{
		{name: "a certificate of its own", tls: true, h: answer(200, "ok"), output: "ok"},
		{name: "a login", h: answer(401, "no"), output: "asks for a login"},
		{name: "a login, ready?", h: answer(401, "no"), args: []string{"--ready"}, code: exitError, output: "without --ready"},
		{name: "not ready", h: answer(503, "not ready:\ntarget \"a\": first sweep"), args: []string{"--ready"}, code: exitError, output: `target "a"`},
		{name: "something else", h: answer(404, "no"), code: exitError, output: "is this the metrics listener?"},
		{name: "elsewhere", h: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusFound)
		}, code: exitError, output: "302"},
		{name: "no answer", h: func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, args: []string{"--timeout", "50ms"}, code: exitError, output: "no answer within 50ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			start := httptest.NewServer
			if tc.tls {
				start = httptest.NewTLSServer
			}
			srv := start(tc.h)
			defer srv.Close()
			var out bytes.Buffer
			if code := run(t.Context(), append([]string{"health", "--url", srv.URL}, tc.args...), &out, &out); code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, out.String())
			}
			if !strings.Contains(out.String(), tc.output) {
				t.Errorf("said %q, want %q", out.String(), tc.output)
			}
		})
	}
	t.Run("plain http to TLS", func(t *testing.T) {
		t.Parallel()
		srv := httptest.NewUnstartedServer(answer(200, "ok"))
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		defer srv.Close()
		var out bytes.Buffer
		at := strings.Replace(srv.URL, "https://", "http://", 1)
		if code := run(t.Context(), []string{"health", "--url", at}, &out, &out); code != exitError || !strings.Contains(out.String(), "it speaks TLS") {
			t.Errorf("exit code %d, said %q", code, out.String())
		}
	})
}
