package agent_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/acl"
)

// TestAgentAsksSentinelsWithTheLeastRights: the user that `locksteward acl --sentinels`
// makes is enough for the agent, also when another server becomes master: the
// Sentinels refuse it nothing. Without that user the target is away.
func TestAgentAsksSentinelsWithTheLeastRights(t *testing.T) {
	t.Parallel()
	const password = "s3ntinel-canary"
	v, err := acl.ParseVersion(testredis.Version(t).String())
	if err != nil {
		t.Skip(err)
	}
	u, err := acl.Sentinel(v, acl.Ask{Hash: acl.Hash(password)})
	if err != nil {
		t.Fatal(err)
	}
	set := testredis.StartSentinel(t)
	onAll := func(args ...any) {
		t.Helper()
		for _, s := range set.Sentinels {
			if err := s.Client(t).Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "pw")
	testcert.Put(t, file, []byte(password+"\n"))
	b := newBed(t, fmt.Sprintf("targets: [{name: main, url: %q, schedule: '@every 1s', sentinel_username: %s, sentinel_password_file: %q}]\n", set.URL(), u.Name, file))
	b.awaitMetric(`locksteward_target_up{target="main"} 0`)

	var words []any
	for word := range strings.FieldsSeq(u.SetUser()) {
		words = append(words, word)
	}
	onAll(words...)
	onAll("acl", "log", "reset") // of the logins before
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)

	was := set.Master()
	set.Failover(t)
	now := set.Master()
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Targets(t.Context())
		if err != nil {
			return false
		}
		for _, target := range list.Targets {
			for _, n := range target.Nodes {
				if n.Addr == now.Addr() && target.Up {
					return true
				}
			}
		}
		return false
	}, "the agent does not follow from "+was.Addr()+" to "+now.Addr())
	for _, s := range set.Sentinels {
		if log, err := s.Client(t).Do(t.Context(), "acl", "log").Slice(); err != nil || len(log) != 0 {
			t.Errorf("the Sentinel refused %v, %v", log, err)
		}
	}
	if strings.Contains(b.everything(), password) {
		t.Error("the password is in logs, metrics or store")
	}
}
