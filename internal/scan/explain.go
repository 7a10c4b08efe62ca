package scan

import (
	"context"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules"
)

// Explain reads one lock of a server directly, without a sweep, and says what
// each rule makes of it. The key counts as a lock whatever its name. An error
// wraps locksteward.ErrNotFound if there is no such key.
func Explain(ctx context.Context, opts Options, key string) (locksteward.Lock, []rules.Verdict, error) {
	opts.Match = append([]string{literal(key)}, opts.Match...)
	p, err := prepare(opts)
	if err != nil {
		return locksteward.Lock{}, nil, err
	}
	defer p.close()
	l, err := p.scanner.Table().Refresh(ctx, key)
	if err != nil {
		return locksteward.Lock{}, nil, err
	}
	return l, p.engine.Explain(l), nil
}

// literal returns the glob that matches key alone.
func literal(key string) string {
	out := make([]byte, 0, len(key))
	for i := range len(key) {
		switch key[i] {
		case '*', '?', '[', '\\':
			out = append(out, '\\')
		}
		out = append(out, key[i])
	}
	return string(out)
}
