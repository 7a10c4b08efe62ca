package redis

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/locksteward/locksteward"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// scan walks the keyspace and looks at what may be a lock.
func (p *pass) scan(ctx context.Context) error {
	if p.s.unpaced {
		return p.scanAhead(ctx)
	}
	return p.pages(ctx, func(keys []string) error { return p.consume(ctx, keys) })
}

// scanAhead reads pages while others are looked at: without a budget the server
// should never wait for us.
func (p *pass) scanAhead(ctx context.Context) error {
	scanning, stop := context.WithCancel(ctx)
	defer stop()
	pages := make(chan []string, 4)
	done := make(chan error, 1)
	go func() {
		defer close(pages)
		done <- p.pages(scanning, func(keys []string) error {
			select {
			case pages <- keys:
				return nil
			case <-scanning.Done():
				return scanning.Err()
			}
		})
	}()
	var err error
	for keys := range pages {
		if err == nil {
			if err = p.consume(ctx, keys); err != nil {
				stop()
			}
		}
	}
	if scanErr := <-done; err == nil {
		err = scanErr
	}
	return err
}

// pages calls yield with each page of SCAN until the cursor is back at 0. An
// empty page with a cursor is no end.
func (p *pass) pages(ctx context.Context, yield func([]string) error) error {
	end := newScanEnd(p)
	for cursor := uint64(0); ; {
		keys, next, err := p.page(ctx, cursor)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if err := end.page(ctx, len(keys)); err != nil {
			return err
		}
		if cursor == 0 {
			p.answers()
		}
		p.out.Scanned += int64(len(keys))
		p.progress.sink.Scanned(len(keys))
		if err := yield(keys); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

func (p *pass) page(ctx context.Context, cursor uint64) (keys []string, next uint64, err error) {
	count := unpacedCount
	if !p.s.unpaced {
		if err := p.upkeep(ctx, p.pace, p.master.Client); err != nil {
			return nil, 0, err
		}
		if p.source.replica != nil {
			if err := p.upkeep(ctx, p.source.pace, p.source.client); err != nil {
				return nil, 0, err
			}
		}
		count = p.source.pace.Count()
	}
	err = p.s.paced(ctx, p.source.pace, func() error {
		began := time.Now()
		keys, next, err = p.source.client.Scan(ctx, cursor, "", int64(count)).Result()
		now := time.Now()
		p.source.pace.Scanned(now, count, now.Sub(began))
		return err
	})
	return p.readable(keys), next, err
}

// readable leaves out names that are too long to be read.
func (p *pass) readable(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, long := respcheck.Long(name)
		if long {
			p.s.caps.tooLong()
		}
		return long
	})
}

// verify looks directly at known locks that the scan did not meet: SCAN may
// miss what was written while it ran.
func (p *pass) verify(ctx context.Context, missing []subject) error {
	for chunk := range slices.Chunk(missing, subjectsPerLook) {
		if err := p.inspect(ctx, chunk); err != nil {
			return err
		}
	}
	return p.collect(ctx)
}

// consume takes one page of key names.
func (p *pass) consume(ctx context.Context, keys []string) error {
	for _, key := range keys {
		p.route(key)
		if len(p.todo) >= subjectsPerLook {
			if err := p.readTodo(ctx); err != nil {
				return err
			}
		}
	}
	return p.readIfWaiting(ctx)
}

// readTodo looks at all keys that wait for it.
func (p *pass) readTodo(ctx context.Context) error {
	todo := p.todo
	p.todo = p.todo[:0]
	return p.inspect(ctx, todo)
}

// hashOf returns a name's hash.
func (s *Source) hashOf(name string) uint64 { return maphash.String(s.seed, name) }

// answers reports that the server lets itself be read.
func (p *pass) answers() {
	var state *locksteward.NodeState
	if p.out.Answered && len(p.info) > 0 {
		state = new(p.info.node(p.master.Addr))
	}
	p.progress.sink.Answered(p.progress.part, state)
}

// readWithin is how long a key that may be a lock waits for others before it is read, where locks are passed on
// before the sweep ends.
const readWithin = 200 * time.Millisecond

// readIfWaiting reads the queued keys if the first has waited for readWithin.
func (p *pass) readIfWaiting(ctx context.Context) error {
	if !p.progress.early || len(p.todo) == 0 || time.Since(p.todoSince) < readWithin {
		return nil
	}
	return p.readTodo(ctx)
}
