package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// Control sequences of every terminal since the VT100 but for the other buffer,
// which those without it ignore.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	restOfLine  = "\x1b[K"
	restOfPage  = "\x1b[J"
)

// redrawEvery is how often the screen is drawn.
const redrawEvery = time.Second

// show is the demo as a screen that is redrawn until ctx ends. What it returns
// then is why: context.Canceled for a Ctrl-C.
func (r *running) show(ctx context.Context, cast *players) error {
	r.out.write(enterScreen)
	defer r.out.write(leaveScreen)
	r.draw()
	if err := cast.start(ctx, r.group); err != nil {
		return err
	}
	r.group.run("release", func(ctx context.Context) error {
		if err := r.story(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	})
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		r.draw()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// draw writes one screen in one piece.
func (r *running) draw() {
	columns, rows := r.opts.Size()
	if columns < 1 || rows < 1 {
		columns, rows = 80, 24
	}
	var b strings.Builder
	b.WriteString(toTop)
	for i, l := range r.screen(rows) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		// The last column stays free: writing there moves some terminals on.
		b.WriteString(l.render(columns-1, r.opts.Colour))
		b.WriteString(restOfLine)
	}
	b.WriteString(restOfPage)
	r.out.write(b.String())
}

// screen composes at most rows lines. What does not fit is left out from the
// parts that matter least.
func (r *running) screen(rows int) []line {
	var head, locks, findings, events, story, steps []line
	r.board.look(func(s *state) {
		head = r.masthead(s)
		locks, findings = lockLines(s), findingLines(s)
		events, story, steps = slices.Clone(s.events), slices.Clone(s.story), slices.Clone(s.steps)
	})
	if len(story) == 0 {
		story = []line{styled(dim, "  begins when the order's lock is found to be stuck")}
		steps = story
	}
	if len(events) == 0 {
		events = []line{styled(dim, "  none yet")}
	}
	parts := []part{
		{title: "", lines: head, least: len(head)},
		{title: "Locks", lines: locks, least: 4},
		{title: "Findings", lines: findings, least: 3},
		{title: "Events, the last of them", lines: last(events, 6), least: 1, fromEnd: true},
		{title: "A stuck lock is freed by two people", lines: story, least: 2, fromEnd: true},
	}
	if height(parts) > rows {
		parts[len(parts)-1].lines = steps
	}
	return fit(parts, rows)
}

// masthead is the title with the addresses.
func (r *running) masthead(s *state) []line {
	return append([]line{
		{{text: "Locksteward demo", style: bold}, {text: "  " + duration(time.Since(s.began)) + "  Ctrl-C ends it", style: dim}},
	}, columns([]line{
		{{text: "redis", style: dim}, {text: r.server.what + ", " + r.server.note}},
		{{text: "metrics", style: dim}, {text: r.agent.metricsURL(), style: cyan}},
		{{text: "console", style: dim}, {text: r.agent.consoleURL(), style: cyan}},
		{{text: "", style: dim}, {text: "name " + guest + ", password " + r.settings.tokens[guest].Reveal(), style: dim}},
	})...)
}

// lockLines is the table of the demo's locks.
func lockLines(s *state) []line {
	rows := []line{{
		{text: "KEY", style: dim},
		{text: "FINDINGS", style: dim},
		{text: "TTL", style: dim},
		{text: "AGE", style: dim},
		{text: "LIBRARY", style: dim},
		{text: "HOLDER", style: dim},
	}}
	for _, l := range s.locks {
		verdict := span{text: "-", style: green}
		if rules := append(slices.Clone(l.Findings), s.ofClass(l.Class)...); len(rules) > 0 {
			verdict = span{text: strings.Join(rules, " "), style: yellow}
		}
		rows = append(rows, line{
			{text: l.Key.Key}, verdict, {text: milliseconds(l.TTLMs)}, {text: age(l)}, {text: l.Library}, {text: holder(l.Holder)},
		})
	}
	note := fmt.Sprintf("  %s had %d holders so far, %d workers wait for it", s.scene.cart(), s.turns, s.queue)
	if s.others > 0 {
		note += fmt.Sprintf("; %d other locks on this server: locksteward scan shows them", s.others)
	}
	if s.trouble != nil {
		note = "  the agent's API: " + s.trouble.Error()
	}
	return append(columns(rows), styled(dim, note))
}

func age(l api.Lock) string {
	if l.AgeMs == nil {
		return "-"
	}
	if l.AgeIsMinimum {
		return "≥" + milliseconds(*l.AgeMs)
	}
	return milliseconds(*l.AgeMs)
}

func holder(h api.Holder) string {
	switch {
	case h.App != "":
		return fmt.Sprintf("%s, pid %d", h.App, h.PID)
	case h.Instance != "":
		return clip(h.Instance, 12)
	default:
		return "-"
	}
}

// goneFor is how long a finding stays on the screen after it was resolved.
const goneFor = 30 * time.Second

// findingLines is what fires now, the worst first, then what has gone.
func findingLines(s *state) []line {
	var shown []*sighting
	for i := range s.findings {
		f := &s.findings[i]
		if !f.gone || time.Since(f.last) < goneFor {
			shown = append(shown, f)
		}
	}
	slices.SortStableFunc(shown, func(a, b *sighting) int {
		return cmp.Or(btoi(a.gone)-btoi(b.gone), severityRank(b.Severity)-severityRank(a.Severity))
	})
	out := headLines(shown)
	if missing := s.missing(); len(missing) > 0 {
		out = append(out, styled(dim, "  still to come: "+strings.Join(missing, ", ")))
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// severityRank orders severities; one of a later version comes last.
func severityRank(name string) int {
	severity, err := locksteward.ParseSeverity(name)
	if err != nil {
		return -1
	}
	return int(severity)
}

// part is a piece of the screen.
type part struct {
	title string
	lines []line
	least int // lines that it keeps while others have more than theirs
	// fromEnd drops the first lines when there is no room, not the last.
	fromEnd bool
}

func (p part) height() int {
	if p.title == "" {
		return len(p.lines)
	}
	return len(p.lines) + 2 // a blank line and the title
}

func height(parts []part) int {
	total := 0
	for _, p := range parts {
		total += p.height()
	}
	return total
}

// fit stacks parts into at most rows lines: first each part shrinks to its
// least, the last part first, then whole parts go.
func fit(parts []part, rows int) []line {
	total := height(parts)
	for i := len(parts) - 1; i >= 0 && total > rows; i-- {
		p := &parts[i]
		drop := min(total-rows, max(0, len(p.lines)-p.least))
		if p.fromEnd {
			p.lines = p.lines[drop:]
		} else {
			p.lines = p.lines[:len(p.lines)-drop]
		}
		total -= drop
	}
	var out []line
	for _, p := range parts {
		if p.title != "" {
			out = append(out, nil, styled(bold, p.title))
		}
		out = append(out, p.lines...)
	}
	return out[:min(len(out), max(rows, 0))]
}

func last(lines []line, n int) []line { return lines[max(0, len(lines)-n):] }

// printSummary prints what stays on the terminal after the screen has gone.
func (r *running) printSummary() {
	r.board.look(func(s *state) {
		r.out.lines(styled(bold, "Locksteward demo, after "+duration(time.Since(s.began))))
		r.out.lines(findingLines(s)...)
		if s.ended {
			r.out.print(line{{text: "  released  ", style: green}, {text: s.scene.order() + ", asked for by " + requester + " and approved by " + approver}})
		}
	})
	r.out.print(styled(dim, "  everything that the demo started or wrote is gone"))
	r.out.lines(r.next()...)
}
