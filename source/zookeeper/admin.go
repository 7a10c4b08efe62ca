package zksource

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// adminTimeout is how long an admin server may take. It is no part of reading locks.
const adminTimeout = 2 * time.Second

// askAdmin asks the admin servers for the addresses of sessions. Without an answer they are
// not known.
func (s *Source) askAdmin(ctx context.Context) {
	if len(s.client.spec.admin) == 0 {
		return
	}
	addrs := map[int64]string{}
	for _, url := range s.client.spec.admin {
		_ = connections(ctx, url, addrs) // [Source.Check] reports it
	}
	s.mu.Lock()
	s.addrs = addrs
	s.mu.Unlock()
}

// connections adds the addresses of the sessions of one server, without ports.
func connections(ctx context.Context, admin string, addrs map[int64]string) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(admin, "/")+"/commands/connections", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", admin, resp.Status)
	}
	type connection struct {
		Remote  string `json:"remote_socket_address"`
		Session int64  `json:"session_id"`
	}
	var answer struct {
		Connections []connection `json:"connections"`
		Secure      []connection `json:"secure_connections"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<20)).Decode(&answer); err != nil {
		return fmt.Errorf("read answer of %s: %w", admin, err)
	}
	for _, c := range append(answer.Connections, answer.Secure...) {
		if host, _, err := net.SplitHostPort(c.Remote); err == nil && c.Session != 0 {
			addrs[c.Session] = host
		}
	}
	return nil
}
