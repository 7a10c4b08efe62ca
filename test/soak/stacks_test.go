package soak_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/locksteward/locksteward/internal/stacks"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
)

// stacksWithin is how long an agent may take to tell what its goroutines do.
const stacksWithin = 5 * time.Second

// goroutinesOf asks an agent what its goroutines do: how many of them, by stack. It is
// nil when the agent does not tell, since it is frozen or dies.
func goroutinesOf(ctx context.Context, a *testagent.Agent) map[string]int {
	ctx, cancel := context.WithTimeout(ctx, stacksWithin)
	defer cancel()
	f, err := os.Open(a.LogPath())
	if err != nil {
		return nil
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekEnd); err != nil || !a.TrySignal(syscall.SIGUSR1) {
		return nil
	}
	var read []byte
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		more, err := io.ReadAll(f)
		if err != nil {
			return nil
		}
		read = append(read, more...)
		for {
			line, rest, whole := bytes.Cut(read, []byte("\n"))
			if !whole {
				break
			}
			if out := goroutinesIn(line); out != nil {
				return out
			}
			read = rest
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// goroutinesIn reads a line of a log; nil if it reports something else.
func goroutinesIn(line []byte) map[string]int {
	if !bytes.Contains(line, []byte(`"msg":"`+stacks.Message+`"`)) {
		return nil
	}
	var in struct{ Groups []stacks.Group }
	if json.Unmarshal(line, &in) != nil {
		return nil
	}
	out := map[string]int{}
	for _, g := range in.Groups {
		out[g.Stack] += g.Count
	}
	return out
}

// crowd says what the sample with the most goroutines of a stretch had more of than the
// one with the fewest, the most first; nothing if they are about as many.
func crowd(agent string, life int, from, to time.Duration, list []sample) (rows []string) {
	var few, many *sample
	for i := range list {
		s := &list[i]
		if s.agent != agent || s.life != life || s.at < from || s.at > to || s.stacks == nil {
			continue
		}
		if few == nil || s.goroutines < few.goroutines {
			few = s
		}
		if many == nil || s.goroutines > many.goroutines {
			many = s
		}
	}
	if few == nil || many.goroutines-few.goroutines <= mayGrowCount {
		return nil
	}
	type more struct {
		n     int
		stack string
	}
	var all []more
	for stack, n := range many.stacks {
		if n -= few.stacks[stack]; n > 0 {
			all = append(all, more{n, stack})
		}
	}
	slices.SortFunc(all, func(a, b more) int { return cmp.Or(b.n-a.n, cmp.Compare(a.stack, b.stack)) })
	for _, m := range all {
		rows = append(rows, fmt.Sprintf("| %s | %d | %s: %.0f | %s: %.0f | %d | `%s` |", agent, life, short(few.at), few.goroutines, short(many.at), many.goroutines, m.n, brief(m.stack)))
	}
	return rows
}

// brief leaves the middle of a long stack out, and the paths of packages.
func brief(stack string) string {
	const ends = 4
	names := strings.Split(stack, " < ")
	for i, n := range names {
		by, began := strings.CutPrefix(n, stacks.Began)
		names[i] = by[strings.LastIndexByte(by, '/')+1:]
		if began {
			names[i] = stacks.Began + names[i]
		}
	}
	if len(names) > 2*ends {
		names = slices.Concat(names[:ends], []string{"…"}, names[len(names)-ends:])
	}
	return strings.Join(names, " < ")
}
