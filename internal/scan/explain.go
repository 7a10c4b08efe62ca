package scan

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules"
)

// maxReadings bounds how often a lock is read that keeps a verdict open.
const maxReadings = 3

// Explain reads one lock of a server directly, without a sweep, and says what
// each rule makes of it; a second time a little later, where a rule decides at
// the second look only (no TTL). The key counts as a lock whatever its name. An
// error wraps locksteward.ErrNotFound if there is no such key.
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
	for range maxReadings {
		look, err := p.scanner.Recheck(ctx, []locksteward.Lock{l})
		if err != nil {
			return locksteward.Lock{}, nil, err
		}
		p.engine.EvaluateDirect(look)
		if now, ok := p.scanner.Table().Get(l.DB, l.Key); ok {
			l = now // else it ended meanwhile: what was seen of it is shown
		} else {
			break
		}
		if len(p.engine.Due(p.target)) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return locksteward.Lock{}, nil, context.Cause(ctx)
		case <-time.After(rules.RecheckAfter + recheckSlack):
		}
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
