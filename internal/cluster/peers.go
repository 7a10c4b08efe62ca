package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

const (
	// path is where calls are served.
	path = "/replica/v1/"
	// maxCall and maxAnswer bound the bodies of a call and its answer.
	maxCall   = 4 << 20
	maxAnswer = 64 << 20
	// callTimeout bounds a call, besides its context.
	callTimeout = 30 * time.Second
	// timeoutHeader is for how many milliseconds the caller will wait.
	timeoutHeader = "Locksteward-Wait-Ms"
)

var errUnknownPeer = errors.New("the certificate is of no replica that shares this database")

// Peers serves calls of other replicas and makes calls to them, over TLS 1.3 with
// certificates on both sides. The names of the calls and their types are those of this
// version: replicas of other versions do not share the schema either.
type Peers struct {
	log  *zap.Logger
	cert tls.Certificate
	key  string
	ln   net.Listener
	mux  *http.ServeMux

	trusts func(ctx context.Context, key string) bool // see [Member.trusts]

	mu      sync.Mutex              // guards clients
	clients map[string]*http.Client // by id of the replica
}

// newPeers listens on an address.
func newPeers(log *zap.Logger, listen string) (*Peers, error) {
	cert, err := newCertificate()
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("cluster.listen: %w; free the port or write another", err)
	}
	return &Peers{log: log, cert: cert, key: keyOf(cert.Certificate[0]), ln: ln, mux: http.NewServeMux(), clients: map[string]*http.Client{}}, nil
}

// newCertificate creates the certificate of this run. It is not stored.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "locksteward replica"},
		// The times are not checked: the membership says which certificates are valid.
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func keyOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// serve answers calls until ctx ends.
func (p *Peers) serve(ctx context.Context) error {
	srv := &http.Server{
		Handler: p.mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: zap.NewStdLog(p.log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.cert}, ClientAuth: tls.RequireAnyClientCert,
			VerifyConnection: func(c tls.ConnectionState) error {
				bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
				defer cancel()
				if len(c.PeerCertificates) == 0 || !p.trusts(bound, keyOf(c.PeerCertificates[0].Raw)) {
					return errUnknownPeer
				}
				return nil
			},
		},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if srv.Shutdown(stop) != nil {
			_ = srv.Close() // cuts the calls under way
		}
	}()
	err := srv.ServeTLS(p.ln, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	<-ended
	return err
}

// close closes the listener and the idle connections.
func (p *Peers) close() {
	_ = p.ln.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		c.CloseIdleConnections()
	}
}

// client returns the client for one replica, which accepts that replica's certificate only.
func (p *Peers) client(r store.Replica) *http.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.clients[r.ID]; ok {
		return c
	}
	c := &http.Client{
		Transport: &http.Transport{
			Proxy: nil, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 2 * time.Second,
			DialContext: (&net.Dialer{Timeout: time.Second}).DialContext,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.cert},
				// It must be the certificate whose digest the replica wrote into the database. No
				// name or authority matters.
				InsecureSkipVerify: true, //nolint:gosec // see above
				VerifyConnection: func(c tls.ConnectionState) error {
					if len(c.PeerCertificates) == 0 || keyOf(c.PeerCertificates[0].Raw) != r.Key {
						return errUnknownPeer
					}
					return nil
				},
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	p.clients[r.ID] = c
	return c
}

// keep closes the connections to all replicas but those present.
func (p *Peers) keep(present []store.Replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, c := range p.clients {
		if !slices.ContainsFunc(present, func(r store.Replica) bool { return r.ID == id }) {
			c.CloseIdleConnections()
			delete(p.clients, id)
		}
	}
}

// answer is the body of the answer to a call.
type answer[R any] struct {
	Problem *api.Problem
	Body    R
}

// Handle serves the calls of a name with fn. Errors of fn reach the caller as an [api.Problem].
// It must be called before [Member.Run].
func Handle[A, R any](p *Peers, name string, fn func(ctx context.Context, in A) (R, error)) {
	p.mux.HandleFunc("POST "+path+name, func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if ms, err := strconv.ParseInt(r.Header.Get(timeoutHeader), 10, 64); err == nil && ms > 0 {
			bound, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
			defer cancel()
			ctx = bound
		}
		var in A
		if err := gob.NewDecoder(http.MaxBytesReader(w, r.Body, maxCall)).Decode(&in); err != nil {
			http.Error(w, "not a call of this version", http.StatusBadRequest)
			return
		}
		var out answer[R]
		var err error
		if out.Body, err = fn(ctx, in); err != nil {
			out.Problem = api.ProblemFor(err)
			if out.Problem.Code == api.CodeInternal && ctx.Err() == nil {
				p.log.Error("call of another replica failed", zap.String("call", name), zap.Error(err))
			}
		}
		var body bytes.Buffer
		if err := gob.NewEncoder(&body).Encode(out); err != nil {
			p.log.Error("encode answer to another replica", zap.String("call", name), zap.Error(err))
			http.Error(w, "the answer cannot be sent", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(body.Bytes()) // fails if the caller is gone
	})
}

// Call makes a call to another replica. An error that it returned is an [api.Problem], and so is one of the connection,
// with [api.CodeUnavailable]: see [NoAnswer].
func Call[A, R any](ctx context.Context, p *Peers, to store.Replica, name string, in A) (R, error) {
	var out answer[R]
	bound, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(in); err != nil {
		return out.Body, fmt.Errorf("call %s: %w", name, err)
	}
	req, err := http.NewRequestWithContext(bound, http.MethodPost, "https://"+to.Address+path+name, &body)
	if err != nil {
		return out.Body, newNoAnswer(to, err)
	}
	if end, ok := bound.Deadline(); ok {
		req.Header.Set(timeoutHeader, strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10))
	}
	res, err := p.client(to).Do(req)
	if err != nil {
		return out.Body, newNoAnswer(to, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return out.Body, newNoAnswer(to, fmt.Errorf("it answered %s", res.Status))
	}
	if err := gob.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&out); err != nil {
		return out.Body, newNoAnswer(to, err)
	}
	if out.Problem != nil {
		return out.Body, out.Problem
	}
	return out.Body, nil
}
