package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/initcfg"
	"github.com/locksteward/locksteward/internal/plural"
)

// maxUnassigned bounds the keys of no class in JSON.
const maxUnassigned = 1000

// writeProposals shows what would be configured.
func writeProposals(w io.Writer, plan initcfg.Plan) error {
	if len(plan.Proposals) == 0 {
		_, err := io.WriteString(w, noProposals(plan))
		return err
	}
	var rows [][]string
	for _, p := range plan.Proposals {
		ttl := "none"
		if p.TTLMax > 0 {
			ttl = span(p.TTLMin) + "-" + span(p.TTLMax)
			if p.WithoutTTL > 0 {
				ttl += fmt.Sprintf(", %d none", p.WithoutTTL)
			}
		}
		oldest := "-"
		if p.AgeKnown {
			oldest = span(p.AgeMax)
			if p.AgeMinimum {
				oldest = "≥" + oldest
			}
		}
		expect := "-"
		if p.Class.Expect > 0 {
			expect = span(p.Class.Expect)
		}
		rows = append(rows, []string{
			p.Name, oneLine(p.Match), strings.Join(p.Libraries(), " "), fmt.Sprint(len(p.Keys)), fmt.Sprint(p.Row.Holds()),
			ttl, oldest, expect,
		})
	}
	return writeTable(w, []string{"CLASS", "MATCH", "LIBRARY", "KEYS", "HOLDS", "TTL LEFT", "OLDEST", "EXPECT"}, rows)
}

// noProposals says what was looked for in vain, and what to do.
func noProposals(plan initcfg.Plan) string {
	seen := plan.Seen
	text := fmt.Sprintf("no locks: %s read in %s, and none is a lock in the format of a library that locksteward knows (docs/libraries)\n",
		plural.Count(seen.Keys, "name"), span(seen.To.Sub(seen.From).Round(time.Second)))
	if len(seen.Locks) > 0 {
		text = fmt.Sprintf("no classes: the names of %s have nothing in common, or too few are alike (--min-keys)\n", plural.Count(len(seen.Locks), "lock"))
	}
	if seen.Candidates > 0 {
		text += fmt.Sprintf("%s like a lock by its name alone\n", map[bool]string{true: "1 key looks", false: fmt.Sprint(seen.Candidates) + " keys look"}[seen.Candidates == 1])
	}
	return text + "name your locks with --match; those that are held for a moment need a longer look: --observe 5m\n"
}

// ask asks of each class whether to take it, and returns the names of those that
// are.
func ask(ctx context.Context, in io.Reader, w io.Writer, plan initcfg.Plan) (map[string]bool, error) {
	taken := map[string]bool{}
	lines := readLines(ctx, in)
	all := false
	for i, p := range plan.Proposals {
		if all {
			taken[p.Name] = true
			continue
		}
		fmt.Fprintf(w, "\n%d of %d: class %s, %s\n  %s\n", i+1, len(plan.Proposals), p.Name, oneLine(p.Match), p.Facts())
		for _, key := range p.Examples(plan.Seen) {
			fmt.Fprintf(w, "  %s\n", cellKey(api.NewKey(key)))
		}
		answer, err := answerOf(ctx, lines, w)
		if err != nil {
			return nil, err
		}
		switch answer {
		case "a":
			all = true
			taken[p.Name] = true
		case "y":
			taken[p.Name] = true
		case "q":
			return taken, nil
		}
	}
	return taken, nil
}

// errNoAnswer is a terminal that was closed: nobody said yes.
var errNoAnswer = errors.New("no answer: no file written; add --yes to add all classes")

func answerOf(ctx context.Context, lines <-chan string, w io.Writer) (string, error) {
	for {
		fmt.Fprint(w, "take it? [y]es, [n]o, [a]ll remaining, [q]uit and write: ")
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case line, ok := <-lines:
			if !ok {
				return "", errNoAnswer
			}
			switch answer := strings.ToLower(strings.TrimSpace(line)); answer {
			case "y", "n", "a", "q":
				return answer, nil
			case "yes", "no", "all", "quit":
				return answer[:1], nil
			}
		}
	}
}

// readLines reads in a goroutine of its own, so that Ctrl-C works; a read cannot be interrupted.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// initPlan is the plan for programs.
func initPlan(plan initcfg.Plan, f initFlags, text string, taken map[string]bool, written bool) api.InitPlan {
	out := api.InitPlan{
		Target: f.name, ObservedMs: plan.Seen.To.Sub(plan.Seen.From).Milliseconds(), Sweeps: plan.Seen.Sweeps, Keys: plan.Seen.Keys,
		Candidates: plan.Seen.Candidates, Classes: []api.InitProposal{}, Unassigned: []api.Key{}, UnassignedTotal: len(plan.Rest),
		File: f.file, Written: written, Config: text, Incomplete: plan.Seen.Incomplete,
	}
	for _, key := range plan.Rest[:min(maxUnassigned, len(plan.Rest))] {
		out.Unassigned = append(out.Unassigned, api.NewKey(key))
	}
	for _, p := range plan.Proposals {
		row := api.InitProposal{
			Class: p.Name, Match: []string{p.Match}, Accepted: taken[p.Name], Locks: len(p.Keys), Open: p.Open, Holds: p.Row.Holds(),
			WithoutTTL: p.WithoutTTL, Examples: []api.Key{}, Libraries: p.Libraries(), OldestIsMinimum: p.AgeMinimum, Watched: p.Watched(),
			Suggested: api.SuggestedPolicy{
				ExpectMs: someMs(p.Expect.Value), ExpectReason: p.Expect.Reason, TTLMs: someMs(p.TTL.Value), TTLReason: p.TTL.Reason,
			},
			TTL: string(p.Class.TTL), MaxTTLMs: someMs(p.Class.MaxTTL),
		}
		for _, key := range p.Examples(plan.Seen) {
			row.Examples = append(row.Examples, api.NewKey(key))
		}
		if p.TTLMax > 0 {
			row.TTLMinMs, row.TTLMaxMs = new(p.TTLMin.Milliseconds()), new(p.TTLMax.Milliseconds())
		}
		if p.AgeKnown {
			row.OldestMs = new(p.AgeMax.Milliseconds())
		}
		out.Classes = append(out.Classes, row)
	}
	return out
}

// someMs is null for nothing.
func someMs(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(d.Milliseconds())
}
