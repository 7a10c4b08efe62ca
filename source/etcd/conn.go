package etcdsource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/locksteward/locksteward/source"
)

const (
	// requestTimeout bounds each request, and a login.
	requestTimeout = 5 * time.Second
	// maxMessage bounds an answer; a page that is larger is asked for in smaller ones.
	maxMessage = 16 << 20
	// defaultPort is where etcd takes clients.
	defaultPort = "2379"
)

// conn is a client that is made when it is first needed, and anew once its login was
// refused: the password may be another by then. It is safe for concurrent use.
type conn struct {
	login     source.Login
	user      string
	endpoints []string
	// turn holds one token; who has it may use client.
	turn   chan struct{}
	client *clientv3.Client
	closed bool
}

var errClosed = errors.New("the source is closed")

// Schemes are those of the URLs of an etcd, without TLS and with it.
var Schemes = []string{"etcd", "etcds"}

// newConn returns what is wrong with login. It does no I/O.
func newConn(login source.Login) (*conn, error) {
	c := &conn{login: login, user: login.Username, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	scheme, rest, ok := strings.Cut(login.URL, "://")
	web := "http"
	switch {
	case !ok || !slices.Contains(Schemes, scheme):
		return nil, errors.New("the URL must begin with etcd:// or etcds://, as etcd://host-1:2379,host-2:2379")
	case scheme == "etcds":
		web = "https"
		if c.login.TLS == nil {
			c.login.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	case login.TLS != nil:
		return nil, errors.New("TLS is configured for etcd://, which is not encrypted; write etcds://")
	}
	if user, hosts, named := strings.Cut(rest, "@"); named {
		if strings.Contains(user, ":") {
			return nil, errors.New("the URL must not have a password; configure it apart")
		}
		if rest = hosts; c.user == "" {
			c.user = user
		}
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if path != "" || strings.ContainsAny(hosts, "?#") {
		return nil, errors.New("the URL must end after its hosts, as etcd://host-1:2379,host-2:2379; what is read follows from the classes")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
		}
		if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
			return nil, errors.New("the URL has a host without a name; write it as etcd://host-1:2379,host-2:2379")
		}
		c.endpoints = append(c.endpoints, web+"://"+host)
	}
	return c, nil
}

// node is what the servers are called together.
func (c *conn) node() string {
	_, host, _ := strings.Cut(c.endpoints[0], "://")
	return host
}

// get returns the client, made if there is none.
func (c *conn) get(ctx context.Context) (*clientv3.Client, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.turn:
	}
	defer func() { c.turn <- struct{}{} }()
	switch {
	case c.closed:
		return nil, errClosed
	case c.client != nil:
		return c.client, nil
	}
	cfg := clientv3.Config{
		Endpoints: c.endpoints, TLS: c.login.TLS, Username: c.user, Logger: zap.NewNop(),
		DialTimeout: requestTimeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: requestTimeout,
		MaxCallRecvMsgSize: maxMessage, MaxUnaryRetries: uint(2 * len(c.endpoints)), BackoffWaitBetween: 50 * time.Millisecond,
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(failSoon),
			// An etcd that is back is asked within two seconds.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
				MinConnectTimeout: requestTimeout,
			}),
		},
	}
	if c.login.Password != nil {
		password, err := c.login.Password()
		if err != nil {
			return nil, fmt.Errorf("read the password: %w", err)
		}
		cfg.Password = password.Reveal()
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, err
	}
	c.client = client
	return client, nil
}

// failSoon has a request fail when nothing can be connected to, and say why. The client
// would have it wait until its time is up, and say that.
func failSoon(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(false))...)
}

// drop closes a client whose login was refused, unless another has replaced it.
func (c *conn) drop(client *clientv3.Client) {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	if c.client == client && client != nil {
		_ = client.Close() // it is of no use any more, whatever it says
		c.client = nil
	}
}

// close ends the client; a later get is refused.
func (c *conn) close() {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	c.closed = true
	if c.client != nil {
		_ = c.client.Close() // its own context has ended, it says
		c.client = nil
	}
}

// do passes the client to fn, whose context ends after requestTimeout.
func (c *conn) do(ctx context.Context, fn func(context.Context, *clientv3.Client) error) error {
	client, err := c.get(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = fn(ctx, client)
	if loginRefused(err) {
		c.drop(client)
	}
	return err
}

// loginRefused says that another login may help.
func loginRefused(err error) bool {
	for _, e := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound} {
		if is(err, e) {
			return true
		}
	}
	return false
}
