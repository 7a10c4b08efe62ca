package acl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// onEach has all Sentinels of a set know the users, each with the same password, by
// the very command that is printed.
func onEach(t *testing.T, set *testredis.Sentinel, users ...acl.User) {
	t.Helper()
	for _, s := range set.Sentinels {
		admin := s.Client(t)
		for _, u := range users {
			u.PasswordHash = acl.Hash(password)
			var words []any
			for word := range strings.FieldsSeq(u.SetUser()) {
				words = append(words, word)
			}
			if err := admin.Do(t.Context(), words...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// sentinelLog is what the Sentinels refused.
func sentinelLog(t *testing.T, set *testredis.Sentinel) []any {
	t.Helper()
	var all []any
	for _, s := range set.Sentinels {
		log, err := s.Client(t).Do(t.Context(), "acl", "log").Slice()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, log...)
	}
	return all
}

// TestSentinelUsersCanDoNothingElse: of all commands and subcommands that a Sentinel
// has, the users may run what their lists say, and none besides.
func TestSentinelUsersCanDoNothingElse(t *testing.T) {
	t.Parallel()
	v := running(t)
	users := []acl.User{sentinelOf(t, v, acl.Ask{}), sentinelOf(t, v, acl.Ask{Name: "follower", Follow: true})}
	set := testredis.StartSentinel(t)
	onEach(t, set, users...)
	t.Run("users", func(t *testing.T) { nothingElse(t, set.Sentinels[0], users...) })
	rdb := set.Sentinels[0].ClientAs(t, "follower", password)
	for channel, may := range map[string]bool{"+switch-master": true, "+sdown": false, "__sentinel__:hello": false} {
		sub := rdb.Subscribe(t.Context(), channel)
		_, err := sub.Receive(t.Context())
		if closeErr := sub.Close(); closeErr != nil {
			t.Error(closeErr)
		}
		if (err == nil) != may || err != nil && !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("subscribe to %s: %v, want allowed: %t", channel, err, may)
		}
	}
}

// TestSentinelUsersAreEnough: the connections of scan and agent, and the failover
// client of an application, are refused nothing.
func TestSentinelUsersAreEnough(t *testing.T) {
	t.Parallel()
	v := running(t)
	set := testredis.StartSentinel(t)
	onEach(t, set, sentinelOf(t, v, acl.Ask{}), sentinelOf(t, v, acl.Ask{Name: "follower", Follow: true}))
	conn, err := connect.Open(connect.Config{URL: set.URL(), SentinelUsername: acl.DefaultSentinel, SentinelPassword: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	masters, err := conn.Masters(t.Context())
	if err != nil || len(masters) != 1 || masters[0].Addr != set.Master().Addr() {
		t.Fatalf("masters %+v, %v", masters, err)
	}
	opts := set.Options()
	opts.SentinelUsername, opts.SentinelPassword, opts.ClientName = "follower", password, "app"
	client := redis.NewFailoverClient(opts)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 20*time.Second, func() bool {
		for _, s := range set.Sentinels {
			list, err := s.Client(t).ClientList(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(list, "\n") {
				if strings.Contains(line, " user=follower ") && strings.Contains(line, " sub=2 ") {
					return true
				}
			}
		}
		return false
	}, "the client is not notified of another master")
	if log := sentinelLog(t, set); len(log) != 0 {
		t.Errorf("the Sentinels refused %v", log)
	}

	// FLUSHCONFIG keeps the users over a restart, as is said.
	one := set.Sentinels[0]
	if err := one.Client(t).Do(t.Context(), "sentinel", "flushconfig").Err(); err != nil {
		t.Fatal(err)
	}
	one.Kill()
	one.Restart()
	rdb := one.ClientAs(t, acl.DefaultSentinel, password)
	if err := rdb.Do(t.Context(), "sentinel", "get-master-addr-by-name", testredis.SentinelMaster).Err(); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestSentinelUserFitsTheServer(t *testing.T) {
	t.Parallel()
	if _, err := acl.Sentinel(acl.Version{Major: 5}, acl.Ask{}); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("before ACLs: %v", err)
	}
	if _, err := acl.Sentinel(version(t, "7.0"), acl.Ask{Name: "a b"}); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("a name that no server takes: %v", err)
	}
	for text, has := range map[string]bool{"6.2": false, "7.0": false, "7.2": true, "valkey 8.0": true} {
		u := sentinelOf(t, version(t, text), acl.Ask{Follow: true})
		if got := strings.Contains(u.SetUser(), "+client|setinfo"); got != has {
			t.Errorf("%s: %s", text, u.SetUser())
		}
	}
}
