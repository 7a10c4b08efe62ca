package etcdsource

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

// Rights returns the commands that make the users of a source and of a releaser with the
// least rights, for locks of these classes.
func Rights(classes *class.Set) string {
	var b strings.Builder
	grant := func(role, right, prefix string) {
		fmt.Fprintf(&b, "etcdctl role grant-permission --prefix=true %s %s -- %s\n", role, right, quoted(prefix))
	}
	user := func(name string) {
		fmt.Fprintf(&b, "etcdctl user add %s                      # asks for a password\netcdctl user grant-role %s %s\n", name, name, name)
	}
	b.WriteString("# Run these as root of etcd, whose authentication must be on (etcdctl auth enable).\n")
	if prefixesOf(classes)[0] == "" {
		b.WriteString("# No class has a pattern, or one begins with a star, so these are rights to EVERY key: write patterns\n# that begin as the locks do, and print this again with that configuration.\n")
	}
	b.WriteString("# Reading: keys and, with no right of its own, what is left of their leases.\netcdctl role add locksteward\n")
	for _, p := range prefixesOf(classes) {
		grant("locksteward", "read", p)
	}
	user("locksteward")
	b.WriteString("# Releasing, only where classes may be released: keys of locks, and the records of releases.\netcdctl role add locksteward-release\n")
	for _, p := range prefixesOf(classes) {
		grant("locksteward-release", "readwrite", p)
	}
	grant("locksteward-release", "readwrite", recordPrefix)
	user("locksteward-release")
	return b.String()
}

// quoted is a word of a shell.
func quoted(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		var b strings.Builder
		b.WriteString("$'")
		for i := range len(text) {
			fmt.Fprintf(&b, `\x%02x`, text[i])
		}
		return b.String() + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Examine looks whether a source or, if release is set, a releaser can do its work with
// this login. It reads, and writes nothing: the rights of a releaser are seen as far as
// they are readings.
func Examine(ctx context.Context, login source.Login, classes *class.Set, release bool) []source.Check {
	c, err := newConn(login)
	if err != nil {
		return []source.Check{source.CheckFailed("login", err.Error(), "correct the settings")}
	}
	defer c.close()
	var out []source.Check
	add := func(name, good string, err error) bool {
		check := source.CheckOK(name, good)
		if err != nil {
			check = source.CheckFailed(name, explain(err), "")
		}
		out = append(out, check)
		return err == nil
	}
	rd := newReader(c, time.Now)
	// Any member answers this, with a leader or without.
	if !add("login", "etcd answers, and takes the login", rd.do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		return allowed(get(ctx, client, probe, clientv3.WithSerializable()))
	})) {
		return out
	}
	if !add("leader", "there is a leader", rd.do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		return allowed(get(ctx, client, probe))
	})) {
		return out
	}
	prefixes := prefixesOf(classes)
	if release {
		prefixes = append(prefixes, recordPrefix)
	}
	for _, p := range prefixes {
		from, end := p, clientv3.GetPrefixRangeEnd(p)
		if p == "" {
			from, end = "\x00", "\x00"
		}
		add("read "+locksteward.DisplayKey(p), "keys can be read", rd.do(ctx, func(ctx context.Context, client *clientv3.Client) error {
			return get(ctx, client, from, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		}))
	}
	add("leases", "the remaining time of leases can be read", func() error {
		_, err := rd.leaseOf(ctx, 1)
		return err
	}())
	add("clock", "etcd has no clock for clients: ends of leases and ages are by the agent's clock", nil)
	return out
}

// probe is a key that is asked for to see whether etcd answers.
const probe = recordPrefix + "probe"

func get(ctx context.Context, client *clientv3.Client, key string, opts ...clientv3.OpOption) error {
	_, err := client.Get(ctx, key, opts...)
	return err
}

// allowed takes the refusal of a right for an answer.
func allowed(err error) error {
	if is(err, rpctypes.ErrPermissionDenied) {
		return nil
	}
	return err
}
