// Package testdns is a DNS server on loopback for tests: it answers for SRV records
// over UDP as configured, or keeps silent.
package testdns

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Server is a DNS server. It is safe for concurrent use.
type Server struct {
	conn net.PacketConn

	mu      sync.Mutex
	silent  bool
	records map[string][]net.SRV
	asked   int
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{conn: conn, records: map[string][]net.SRV{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.serve(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dns server: %v", err)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return s
}

// Addr is host:port.
func (s *Server) Addr() string { return s.conn.LocalAddr().String() }

// Set says what a name answers with from now on; without records it exists and has
// none.
func (s *Server) Set(name string, records ...net.SRV) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[fqdn(name)] = records
}

// Silence has the server answer nothing, or again.
func (s *Server) Silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// Asked is how many questions came.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *Server) serve() error {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		raw, err := s.answer(buf[:n])
		if err != nil {
			return err
		}
		if raw == nil {
			continue
		}
		if _, err := s.conn.WriteTo(raw, from); err != nil {
			return err
		}
	}
}

func (s *Server) answer(raw []byte) ([]byte, error) {
	var q dnsmessage.Message
	if err := q.Unpack(raw); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.silent || len(q.Questions) != 1 {
		return nil, nil
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: q.ID, Response: true, Authoritative: true, RecursionDesired: q.RecursionDesired},
		Questions: q.Questions,
	}
	records, known := s.records[strings.ToLower(q.Questions[0].Name.String())]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, r := range records {
		target, err := dnsmessage.NewName(fqdn(r.Target))
		if err != nil {
			return nil, err
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET, TTL: 1},
			Body:   &dnsmessage.SRVResource{Priority: r.Priority, Weight: r.Weight, Port: r.Port, Target: target},
		})
	}
	return m.Pack()
}

func fqdn(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) + "." }
