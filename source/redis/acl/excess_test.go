package acl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/acl"
)

// denials is what the server's log of refusals has.
func denials(t *testing.T, admin *redis.Client) int {
	t.Helper()
	log, err := admin.Do(t.Context(), "acl", "log").Slice()
	if err != nil {
		t.Fatal(err)
	}
	return len(log)
}

func TestExcess(t *testing.T) {
	t.Parallel()
	u := scannerOf(t, running(t), acl.Scan{Hash: acl.Hash(password)})
	bare := scannerOf(t, running(t), acl.Scan{Name: "bare", Hash: acl.Hash(password), NoSelfCheck: true})
	srv := testredis.Start(t, testredis.WithACL(
		u.FileLine(), bare.FileLine(),
		"writer on >"+password+" %R~* ~lock:* &* +@read +@write +@connection +info",
		"reader on >"+password+" %R~* &* +@read +@connection +info +acl|dryrun +keys +config|get",
	))
	admin := srv.Client(t)
	tests := map[string]struct {
		user    string
		how     string
		excess  []string // some of them
		all     bool
		logs    int // entries in ACL LOG
		warning string
	}{
		"least":            {user: "scanner", how: "dry run"},
		"not even dry run": {user: "bare", how: "attempt", logs: 2},
		"application's":    {user: "writer", how: "attempt", excess: []string{"set"}, logs: 2, warning: "writer may do SET"},
		"reads too much":   {user: "reader", how: "dry run", excess: []string{"keys", "config|get"}, warning: "CONFIG GET"},
		"all":              {user: testredis.AdminUser, how: "dry run", excess: []string{"flushall", "set", "shutdown"}, all: true, warning: "everything"},
	}
	for name, tc := range tests {
		before := denials(t, admin)
		rdb := admin
		if tc.user != testredis.AdminUser {
			rdb = srv.ClientAs(t, tc.user, password)
		}
		r, err := acl.Excess(t.Context(), rdb, tc.user)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !r.Known || r.How != tc.how || r.All != tc.all || (len(tc.excess) == 0) != (len(r.Excess) == 0) {
			t.Errorf("%s: %+v", name, r)
		}
		for _, want := range tc.excess {
			if !slices.Contains(r.Excess, want) {
				t.Errorf("%s: %s is not in %v", name, want, r.Excess)
			}
		}
		if text := r.Warning(tc.user); (tc.warning == "") != (text == "") || !strings.Contains(text, tc.warning) {
			t.Errorf("%s: warning %q", name, text)
		}
		if now := denials(t, admin); now-before != tc.logs {
			t.Errorf("%s: %d entries in ACL LOG, want %d", name, now-before, tc.logs)
		}
	}
	if n := admin.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("asking wrote %d keys", n)
	}
}

func TestExcessOfAServerThatIsAway(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	options := srv.Options()
	options.DialerRetries, options.MaxRetries = 1, -1
	rdb := redis.NewClient(options)
	defer rdb.Close()
	srv.Kill()
	if r, err := acl.Excess(t.Context(), rdb, ""); err == nil || r.Known {
		t.Errorf("%+v, %v", r, err)
	}
}
