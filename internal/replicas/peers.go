package replicas

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
	// maxCall and maxAnswer bound what one call carries.
	maxCall   = 4 << 20
	maxAnswer = 64 << 20
	// callFor is how long a call takes at most that has no end of its own.
	callFor = 30 * time.Second
	// leftHeader is how many milliseconds the caller waits still.
	leftHeader = "Locksteward-Wait-Ms"
)

// errUnknownPeer is a certificate that no replica of the database has.
var errUnknownPeer = errors.New("the certificate is of no replica that shares this database")

// Peers serves calls of other replicas and makes calls to them, over TLS 1.3 with
// certificates on both sides. The names of what is called and the types that are sent
// are those of this version: replicas of another version are no peers of the schema
// either.
type Peers struct {
	log  *zap.Logger
	cert tls.Certificate
	key  string
	ln   net.Listener
	mux  *http.ServeMux

	// knows says whether a key is of a replica that is there.
	knows func(ctx context.Context, key string) bool

	mu   sync.Mutex
	to   map[string]*http.Client // by replica
	done bool
}

// newPeers listens.
func newPeers(log *zap.Logger, listen string) (*Peers, error) {
	cert, err := newCertificate()
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("cluster.listen: %w; free the port or write another", err)
	}
	return &Peers{log: log, cert: cert, key: keyOf(cert.Certificate[0]), ln: ln, mux: http.NewServeMux(), to: map[string]*http.Client{}}, nil
}

// newCertificate is of this run alone: nothing is kept.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "locksteward replica"},
		// Nobody looks at the time: the database says until when it is one of ours.
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func keyOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// serve answers until ctx ends.
func (p *Peers) serve(ctx context.Context) error {
	srv := &http.Server{
		Handler: p.mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: zap.NewStdLog(p.log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.cert}, ClientAuth: tls.RequireAnyClientCert,
			VerifyConnection: func(c tls.ConnectionState) error {
				// Its own words, not the context of a request: there is none yet.
				look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
				defer cancel()
				if len(c.PeerCertificates) == 0 || !p.knows(look, keyOf(c.PeerCertificates[0].Raw)) {
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
			_ = srv.Close() // calls that do not end are cut
		}
	}()
	err := srv.ServeTLS(p.ln, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	<-ended
	return err
}

// close ends what serve did not, and forgets connections.
func (p *Peers) close() {
	_ = p.ln.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	for _, c := range p.to {
		c.CloseIdleConnections()
	}
}

// client speaks to one replica alone.
func (p *Peers) client(r store.Replica) *http.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.to[r.ID]; ok {
		return c
	}
	c := &http.Client{
		Transport: &http.Transport{
			Proxy: nil, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 2 * time.Second,
			DialContext: (&net.Dialer{Timeout: time.Second}).DialContext,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.cert},
				// No name or authority is asked: it must be the one certificate that the
				// replica wrote into the database.
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
	p.to[r.ID] = c
	return c
}

// forget drops the connections to replicas that are gone.
func (p *Peers) forget(there []store.Replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, c := range p.to {
		found := false
		for _, r := range there {
			found = found || r.ID == id
		}
		if !found {
			c.CloseIdleConnections()
			delete(p.to, id)
		}
	}
}

// answer is what comes back of a call.
type answer[R any] struct {
	Problem *api.Problem
	Body    R
}

// Handle serves calls of a name. Errors of fn reach the caller as an [api.Problem].
// It is called before [Keeper.Run].
func Handle[A, R any](p *Peers, name string, fn func(ctx context.Context, in A) (R, error)) {
	p.mux.HandleFunc("POST "+path+name, func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if ms, err := strconv.ParseInt(r.Header.Get(leftHeader), 10, 64); err == nil && ms > 0 {
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
				p.log.Error("a call of another replica failed", zap.String("call", name), zap.Error(err))
			}
		}
		var body bytes.Buffer
		if err := gob.NewEncoder(&body).Encode(out); err != nil {
			p.log.Error("an answer to another replica is not encoded", zap.String("call", name), zap.Error(err))
			http.Error(w, "the answer cannot be sent", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(body.Bytes()) // who asked is gone
	})
}

// Call has another replica do something. An error that it had is an [api.Problem];
// one of the way there is too, with [api.CodeUnavailable].
func Call[A, R any](ctx context.Context, p *Peers, to store.Replica, name string, in A) (R, error) {
	var out answer[R]
	bound, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(in); err != nil {
		return out.Body, fmt.Errorf("call %s: %w", name, err)
	}
	req, err := http.NewRequestWithContext(bound, http.MethodPost, "https://"+to.Address+path+name, &body)
	if err != nil {
		return out.Body, away(to, err)
	}
	if end, ok := bound.Deadline(); ok {
		req.Header.Set(leftHeader, strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10))
	}
	res, err := p.client(to).Do(req)
	if err != nil {
		return out.Body, away(to, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return out.Body, away(to, fmt.Errorf("it answered %s", res.Status))
	}
	if err := gob.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&out); err != nil {
		return out.Body, away(to, err)
	}
	if out.Problem != nil {
		return out.Body, out.Problem
	}
	return out.Body, nil
}

func away(to store.Replica, err error) error {
	dial, ok := errors.AsType[*net.OpError](err)
	return &silent{sent: !ok || dial.Op != "dial", problem: api.NewProblem(api.CodeUnavailable, fmt.Sprintf(
		"replica %s at %s does not answer: %v; if it runs, cluster.advertise there must be an address that reaches it from here", to.Name, to.Address, err))}
}
