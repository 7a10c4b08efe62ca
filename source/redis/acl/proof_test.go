package acl_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/acl"
)

const password = "acl-canary-1"

// withUsers starts a server that has the users, each with the same password, as
// lines of its configuration.
func withUsers(t *testing.T, users ...acl.User) *testredis.Server {
	t.Helper()
	var lines []string
	for _, u := range users {
		u.PasswordHash = acl.Hash(password)
		lines = append(lines, u.FileLine())
	}
	return testredis.Start(t, testredis.WithACL(lines...), testredis.WithConfig("enable-module-command yes"))
}

// verb is one command or subcommand that a server has.
type verb struct {
	name  string // as an ACL writes it
	words []any
	flags []string
	arity int
}

// args are as many words as the command wants.
func (v verb) args() []any {
	args := slices.Clone(v.words)
	for n := max(v.arity, -v.arity); len(args) < n; {
		args = append(args, "1")
	}
	return args
}

// verbs are all commands of a server, with all their subcommands in place of
// those that have some.
func verbs(t *testing.T, rdb *redis.Client) []verb {
	t.Helper()
	reply, err := rdb.Do(t.Context(), "command").Slice()
	if err != nil {
		t.Fatal(err)
	}
	var list []verb
	for _, raw := range reply {
		list = append(list, verbsOf(raw.([]any))...)
	}
	count, err := rdb.Do(t.Context(), "command", "count").Int()
	if err != nil || len(reply) != count || len(list) < count {
		t.Fatalf("%d commands in the list, %d with their subcommands, the server counts %d (%v)", len(reply), len(list), count, err)
	}
	return list
}

// verbsOf reads one entry of COMMAND: name, arity, flags, …, subcommands.
func verbsOf(entry []any) (list []verb) {
	name := entry[0].(string)
	v := verb{name: name, arity: int(entry[1].(int64))}
	for part := range strings.SplitSeq(name, "|") {
		v.words = append(v.words, part)
	}
	for _, flag := range entry[2].([]any) {
		v.flags = append(v.flags, flag.(string))
	}
	subs, _ := entry[9].([]any)
	for _, raw := range subs {
		list = append(list, verbsOf(raw.([]any))...)
	}
	if len(list) == 0 {
		list = []verb{v}
	}
	return list
}

// always are the commands that a server lets everybody run, whatever the ACL
// says (flag no_auth): they log in and out.
var always = []string{"auth", "hello", "quit", "reset"}

// The scanner, releaser and application may run what the list says, and of all
// other commands and subcommands that the server has, none.
func TestUsersCanDoNothingElse(t *testing.T) {
	t.Parallel()
	v := running(t)
	classes := []class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Release: class.ReleaseApprove}}
	users := []acl.User{
		scannerOf(t, v, acl.Scan{}),
		scannerOf(t, v, acl.Scan{Name: "keyspace", NoSelfCheck: true, Keyspace: redissource.ACLKeyspace(0, &class.Set{})}),
		releaserOf(t, v, acl.Free{Classes: classes}),
		appOf(t, v, acl.App{Name: "billing", Locks: []string{"lock:billing:*"}, KeyPrefix: "billing:ls:"}),
		appOf(t, v, acl.App{Name: "clustered", Locks: []string{"lock:c:*"}, Cluster: true, DB: 1}),
	}
	nothingElse(t, withUsers(t, users...), users...)
}

// nothingElse asks a server of each of its commands whether the users may run it, and
// tries all that their lists do not have.
func nothingElse(t *testing.T, srv *testredis.Server, users ...acl.User) {
	t.Helper()
	admin := srv.Client(t)
	all := verbs(t, admin)
	for _, u := range users {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			granted := map[string]bool{}
			asked, wrote, free := 0, 0, 0
			for _, verb := range all {
				// A command in the list stands for its subcommands too.
				whole, _, _ := strings.Cut(verb.name, "|")
				listed := slices.Contains(u.Commands, "+"+verb.name) || slices.Contains(u.Commands, "+"+whole)
				granted[verb.name], granted[whole] = listed, granted[whole] || listed
				may := dryRun(t, admin, u.Name, verb.args())
				asked++
				switch {
				case slices.Contains(always, verb.name):
					free++
					if !slices.Contains(verb.flags, "no_auth") {
						t.Errorf("%s is not for everybody", verb.name)
					}
				case may != listed:
					t.Errorf("%s: the server says %t, the list %t", verb.name, may, listed)
				case listed && slices.Contains(verb.flags, "write") && !strings.HasPrefix(u.For, "approved") && !strings.HasPrefix(u.For, "the application"):
					t.Errorf("%s writes", verb.name)
				}
			}
			for _, rule := range u.Commands {
				if name := strings.TrimPrefix(rule, "+"); !granted[name] {
					t.Errorf("the list has %s, the server does not", name)
				}
			}
			// And for real: each command that is not in the list, sent as that user.
			rdb := srv.ClientAs(t, u.Name, password)
			for _, verb := range all {
				if granted[verb.name] || slices.Contains(always, verb.name) {
					continue
				}
				if err := send(t.Context(), rdb, verb.args()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
					t.Errorf("%v was carried out: %v", verb.args(), err)
				}
				wrote++
			}
			t.Logf("%d commands asked of the server, %d tried, %d granted", asked, wrote, asked-wrote-free)
		})
	}
}

// dryRun asks the server as its administrator.
func dryRun(t *testing.T, admin *redis.Client, user string, args []any) bool {
	t.Helper()
	reply, err := admin.Do(t.Context(), append([]any{"acl", "dryrun", user}, args...)...).Text()
	if err != nil {
		t.Fatalf("dry run of %v: %v", args, err)
	}
	return !strings.Contains(reply, "permissions to run")
}

// send runs a command on a connection of its own, since some would change it.
func send(ctx context.Context, rdb *redis.Client, args []any) error {
	cn := rdb.Conn()
	defer cn.Close()
	return cn.Do(ctx, args...).Err()
}

// What the list grants by key and channel: all may be read, nothing written, and
// only pushes and our own channels received.
func TestScannerKeysAndChannels(t *testing.T) {
	t.Parallel()
	v := running(t)
	srv := withUsers(t, scannerOf(t, v, acl.Scan{}), scannerOf(t, v, acl.Scan{Name: "narrow", Read: []string{"lock:*"}, MetaPrefixes: []string{"app:"}}))
	admin := srv.Client(t)
	for name, tc := range map[string]struct {
		user string
		args []any
		want acl.Verdict
	}{
		"any key":             {"scanner", []any{"getrange", "x", "0", "1"}, acl.Allowed},
		"own pushes":          {"scanner", []any{"subscribe", "__redis__:invalidate"}, acl.Allowed},
		"our channels":        {"scanner", []any{"subscribe", "locksteward:wake:{a}"}, acl.Allowed},
		"other channels":      {"scanner", []any{"subscribe", "chat"}, acl.KeyRefused},
		"narrow: its keys":    {"narrow", []any{"getrange", "lock:1", "0", "1"}, acl.Allowed},
		"narrow: others":      {"narrow", []any{"getrange", "session:1", "0", "1"}, acl.KeyRefused},
		"narrow: metadata":    {"narrow", []any{"get", "locksteward:hold:{lock:1}"}, acl.Allowed},
		"narrow: moved":       {"narrow", []any{"hgetall", "app:meta:{lock:1}"}, acl.Allowed},
		"narrow: fair queues": {"narrow", []any{"llen", "redisson_lock_queue:{lock:1}"}, acl.Allowed},
		"no write":            {"scanner", []any{"set", "x", "1"}, acl.Refused},
	} {
		got, err := acl.DryRun(t.Context(), admin, tc.user, tc.args...)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

// What facts.go says of since when a command is there is what the server says.
func TestFactsAreTheServers(t *testing.T) {
	t.Parallel()
	v := running(t)
	testredis.Since(t, 7, 0, "COMMAND DOCS")
	admin := testredis.Start(t).Client(t)
	reply, err := admin.Do(t.Context(), "command", "docs").Result()
	if err != nil {
		t.Fatal(err)
	}
	since := map[string]string{}
	collectSince(since, reply)
	// A Sentinel has commands of its own.
	sentinel := testredis.StartSentinel(t).Sentinels[0].Client(t)
	if reply, err = sentinel.Do(t.Context(), "command", "docs").Result(); err != nil {
		t.Fatal(err)
	}
	own := map[string]string{}
	collectSince(own, reply)
	for name, text := range own {
		if _, known := since[name]; !known {
			since[name] = text
		}
	}
	if since["get"] == "" {
		t.Fatalf("COMMAND DOCS has no GET: %v", since)
	}
	checked := 0
	for _, f := range acl.Facts() {
		name, major, minor := f.Name, f.Major, f.Minor
		text, known := since[name]
		if !v.AtLeast(major, minor) {
			if known {
				t.Errorf("%s came with %d.%d as it is written, but %s has it", name, major, minor, v)
			}
			continue
		}
		checked++
		if v, err := acl.ParseSince(text); err != nil || v.Major != major || v.Minor != minor {
			t.Errorf("%s: since %d.%d, the server says %q", name, major, minor, text)
		}
	}
	if checked == 0 {
		t.Error("no fact was compared")
	}
}

// collectSince reads COMMAND DOCS: pairs of name and pairs, subcommands inside.
func collectSince(out map[string]string, docs any) {
	each := func(v any, visit func(name string, value any)) {
		switch x := v.(type) {
		case []any:
			for i := 0; i+1 < len(x); i += 2 {
				visit(x[i].(string), x[i+1])
			}
		case map[any]any:
			for name, value := range x {
				visit(name.(string), value)
			}
		}
	}
	each(docs, func(name string, doc any) {
		each(doc, func(field string, value any) {
			switch field {
			case "since":
				out[name] = value.(string)
			case "subcommands":
				collectSince(out, value)
			}
		})
	})
}
