package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/locksteward/locksteward/api"
)

// sink is the webhook receiver: where a team's chat or pager would be.
type sink struct {
	listener net.Listener
	http     *http.Server
	done     chan error
}

// sinkPath is not guessed by who tries ports.
const sinkPath = "/hook"

// maxMessage bounds what is read of one message.
const maxMessage = 1 << 20

// listenSink takes the receiver's port, so that its URL is known.
func listenSink() (*sink, error) {
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		return nil, fmt.Errorf("start the webhook receiver: %w", err)
	}
	return &sink{listener: l, done: make(chan error, 1)}, nil
}

func (s *sink) url() string { return "http://" + s.listener.Addr().String() + sinkPath }

// serve puts what arrives, signed with key, on the board.
func (s *sink) serve(b *board, key []byte) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+sinkPath, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
		if err != nil {
			http.Error(w, "cannot read the message", http.StatusBadRequest)
			return
		}
		if !signed(r.Header, body, key) {
			http.Error(w, "the signature is wrong", http.StatusUnauthorized)
			return
		}
		var message struct {
			Findings []api.Finding `json:"findings"`
		}
		if err := json.Unmarshal(body, &message); err != nil {
			http.Error(w, "the message is not JSON", http.StatusBadRequest)
			return
		}
		for _, f := range message.Findings {
			b.received(f)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { s.done <- s.http.Serve(s.listener) }()
}

// stop ends the receiver and returns when nothing of it runs.
func (s *sink) stop(ctx context.Context) error {
	if s.http == nil {
		return s.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("stop the webhook receiver: %w", err)
	}
	return nil
}

// signed checks a message as Standard Webhooks 1.0 says; docs/webhook.md.
func signed(h http.Header, body, key []byte) bool {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for got := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return true
		}
	}
	return false
}
