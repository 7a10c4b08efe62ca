package takeover_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// replica is one agent of several.
type replica struct {
	*testagent.Agent
	t     *testing.T
	proxy *testredis.Proxy // its way to the database
}

// owner begins the owner of this life's leases, as internal/cluster names them.
func (r *replica) owner() string { return fmt.Sprintf("%s process %d ", r.Name, r.PID()) }

// client speaks to the console of a replica that is well, as far as is known.
func (r *replica) client(token locksteward.Secret) *apiclient.Client {
	at := r.Where()
	if at.Console == "" {
		return nil
	}
	c, err := apiclient.New(at.Console, token, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 15 * time.Second})
	if err != nil {
		r.t.Error(err)
	}
	return c
}

// newReplica writes what a replica needs and starts none.
func newReplica(t *testing.T, name, text, dsn, socket string) *replica {
	t.Helper()
	proxy := testredis.NewProxy(t, socket)
	text += fmt.Sprintf("cluster: {name: %s}\nstore: {dsn: '%s'}\n", name, strings.ReplaceAll(dsn, "ADDRESS", proxy.Addr()))
	return &replica{Agent: testagent.New(t, testagent.Options{Name: name, Config: text}), t: t, proxy: proxy}
}
