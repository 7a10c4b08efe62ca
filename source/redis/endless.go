package redis

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// errEndless is a SCAN that has returned more than there can be: its cursor does not
// come back to 0.
var errEndless = errors.New("SCAN does not end")

const (
	// namesPerKey is how many names SCAN may return for each key. Redis returns one
	// again only where its table shrinks meanwhile, once for each time that it is halved.
	namesPerKey = 4
	// namesBeside is how many more it may return: keys come and go while it goes on.
	namesBeside = 10_000
	// pagesPerName is how many pages without names count as one name: a table that was
	// large once has many of these.
	pagesPerName = 128
	// endlessAfter is how often in a row, namesBeside names apart, there must be too
	// few keys for what was returned: between two looks all of them may be replaced.
	endlessAfter = 3
)

// scanEnd bounds one SCAN by the number of keys, which it asks for again before it says
// that there are too few. What is not reported bounds nothing.
type scanEnd struct {
	p      *pass
	names  int64 // returned so far
	pages  int64
	ask    int64 // when that many are
	tooFew int   // how often in a row
}

func newScanEnd(p *pass) *scanEnd {
	i := p.info
	if p.source.replica != nil {
		i = p.source.replica
	}
	return &scanEnd{p: p, ask: most(i.keys(p.s.target.DB))}
}

// most is how many names SCAN returns at most where there are so many keys.
func most(keys int64) int64 {
	return namesPerKey*min(max(keys, 0), math.MaxInt64/namesPerKey/2) + namesBeside
}

// page takes a page of n names.
func (e *scanEnd) page(ctx context.Context, n int) error {
	e.names += int64(n)
	e.pages++
	given := e.names + e.pages/pagesPerName
	if given <= e.ask {
		return nil
	}
	keys, err := e.p.keysNow(ctx)
	if err != nil {
		return fmt.Errorf("count keys: %w", err)
	}
	e.tooFew++
	if keys < 0 || given <= most(keys) {
		e.tooFew = 0
	}
	if e.tooFew == endlessAfter {
		return fmt.Errorf("%w: %s returned %d names in %d pages and says that it has %d keys", errEndless, e.p.source.addr, e.names, e.pages, keys)
	}
	e.ask = max(given+namesBeside, most(keys))
	return nil
}

// keysNow is how many keys the server that is walked has, -1 if it does not say.
func (p *pass) keysNow(ctx context.Context) (int64, error) {
	text, err := p.askInfoAt(ctx, p.source.pace, p.source.client, "keyspace")
	if err != nil {
		return 0, err
	}
	if text != "" { // a server without keys names no database
		return max(parseInfo(text).keys(p.s.target.DB), 0), nil
	}
	var keys int64
	err = p.callAt(ctx, p.source.pace, 1, func() (err error) {
		keys, err = p.source.client.DBSize(ctx).Result()
		return err
	})
	if judge(err) == without {
		return -1, nil
	}
	return keys, err
}

// notLong is an error about a text of INFO that is longer than is read.
func notLong(text, addr string) error {
	if size, long := respcheck.Long(text); long {
		return &respcheck.Error{Server: addr, What: fmt.Sprintf("an INFO of %d bytes", size)}
	}
	return nil
}
