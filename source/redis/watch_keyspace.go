package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// openKeyspace subscribes to keyspace notifications of db for names that begin
// with one of prefixes. It needs the rules of [ACLKeyspace]. That it succeeds
// says nothing of whether the server sends any: see nodeWatch.proven.
func openKeyspace(ctx context.Context, conn *connect.Conn, addr string, db int, prefixes []string, to listener) (*pair, error) {
	ctx, p := newPair(ctx, conn, addr, prefixes)
	if err := p.subscribeKeyspace(ctx, db, to); err != nil {
		p.close()
		return nil, err
	}
	go p.listen(to)
	return p, nil
}

func (p *pair) subscribeKeyspace(ctx context.Context, db int, to listener) error {
	p.pubsub = p.subscriber.Subscribe(ctx)
	patterns := keyspacePatterns(db, p.prefixes)
	p.patterns = len(patterns)
	if err := p.pubsub.PSubscribe(ctx, patterns...); err != nil {
		return fmt.Errorf("subscribe to keyspace notifications: %w", refusal(err))
	}
	return p.awaitSubscriptions(ctx, len(patterns), to)
}

func keyspacePatterns(db int, prefixes []string) []string {
	patterns := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		patterns[i] = fmt.Sprintf("__keyspace@%d__:%s*", db, escapeGlob(prefix))
	}
	return patterns
}

// ACLKeyspace returns the rules that a watch by keyspace notifications needs
// beside [ACL], for servers that offer no CLIENT TRACKING: a user may subscribe
// to a pattern only if the ACL has the very same one, so they depend on database,
// classes and prefixes of companions ([record.DefaultPrefix] is always among
// them).
func ACLKeyspace(db int, classes *class.Set, metaPrefixes ...string) []string {
	rules := []string{"+psubscribe"}
	plan := newWatchPlan(classes, Config{MetaPrefixes: metaPrefixes}.prefixes(), optionalPrefixes)
	for _, pattern := range keyspacePatterns(db, plan.prefixes) {
		rules = append(rules, "&"+pattern)
	}
	return rules
}

// escapeGlob makes text match only itself in a pattern of the server.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
