package demo

import (
	"context"
	"strings"

	"github.com/locksteward/locksteward"
)

// report is the demo as lines: what runs, what the webhook receives, what was
// found, how a lock is freed, and what Prometheus sees of it.
func (r *running) report(ctx context.Context, cast *players) error {
	r.out.lines(r.title()...)
	if err := cast.start(ctx, r.group); err != nil {
		return err
	}
	r.out.head("Lock users")
	r.out.lines(r.roles()...)

	r.out.head("What the webhook receives, as it comes")
	if err := r.board.await(ctx, func(s *state) bool { return len(s.missing()) == 0 }); err != nil {
		return err
	}
	r.findings()
	r.out.head("A stuck lock is freed by two people")
	if err := r.story(ctx); err != nil {
		return err
	}
	metrics, err := r.agent.metrics(ctx)
	if err != nil {
		return err
	}
	r.out.head("What Prometheus sees  " + r.agent.metricsURL())
	for _, m := range metrics {
		r.out.print(text("  " + m))
	}
	r.out.lines(r.next()...)
	return nil
}

// title says what runs where.
func (r *running) title() []line {
	rows := []line{
		{{text: "redis", style: dim}, {text: r.server.what}},
		{{text: "agent", style: dim}, {text: "in this process, sweeping every second"}},
		{{text: "metrics", style: dim}, {text: r.agent.metricsURL(), style: cyan}},
		{{text: "console", style: dim}, {text: r.agent.consoleURL(), style: cyan}},
		{{text: "alerts", style: dim}, {text: "go to a webhook receiver of the demo, which checks their signature"}},
	}
	out := []line{styled(bold, "Locksteward demo: broken Redis locks are found, shown, notified and released"), nil}
	for i, row := range columns(rows) {
		out = append(out, row)
		if i == 0 {
			for _, l := range wrap(r.server.note, textWidth-11) {
				out = append(out, line{{text: pad("", 11)}, {text: l, style: dim}})
			}
		}
	}
	return out
}

// roles introduces the lock users.
func (r *running) roles() []line {
	var rows []line
	for _, role := range r.server.scene.roles() {
		state := span{text: "broken", style: yellow}
		if role.healthy {
			state = span{text: "healthy", style: green}
		}
		rows = append(rows, line{{text: role.key}, state, {text: role.what}})
	}
	return columns(rows)
}

// findings prints the locks, all promised findings, and one of them in full.
func (r *running) findings() {
	r.board.look(func(s *state) {
		r.out.head("The locks now")
		r.out.lines(lockLines(s)...)

		r.out.head("What the rules found")
		var found []*sighting
		for _, e := range s.scene.expected() {
			found = append(found, s.seen(e))
		}
		for i, head := range headLines(found) {
			r.out.print(head)
			r.out.paragraph(12, dim, found[i].Summary)
		}
		r.out.head("Why, in full, for " + found[0].Rule + " on " + found[0].Key.Key)
		r.out.lines(found[0].full()...)
	})
}

// headLines are findings in one line each.
func headLines(findings []*sighting) []line {
	rows := make([]line, 0, len(findings))
	for _, f := range findings {
		where := f.Key.Key
		if where == "" {
			where = "class " + f.Class
		}
		when := "after " + duration(f.after)
		if f.gone {
			when += ", resolved since"
		}
		rows = append(rows, line{
			{text: pad(f.Severity, 8), style: severityStyle(f.Severity)},
			{text: f.Rule},
			{text: where, style: bold},
			{text: when, style: dim},
		})
	}
	return columns(rows)
}

// full is everything that a finding says.
func (f *sighting) full() []line {
	var out []line
	add := func(mark string, s style, text string) {
		for i, l := range wrap(text, textWidth-12) {
			if i > 0 {
				mark = ""
			}
			out = append(out, line{{text: "  " + pad(mark, 9) + " ", style: s}, {text: l}})
		}
	}
	for _, e := range f.Evidence {
		add("for", dim, locksteward.DisplayKey(e))
	}
	for _, e := range f.CounterEvidence {
		add("against", dim, locksteward.DisplayKey(e))
	}
	add("cause", dim, f.Cause)
	add("remedy", dim, f.Remedy)
	return out
}

// next says what to do now.
func (r *running) next() []line {
	commands := []line{
		{{text: "locksteward scan redis://127.0.0.1:6379/0", style: cyan}, {text: "look once at a server of yours; it changes nothing"}},
		{{text: "locksteward config show --example > locksteward.yaml", style: cyan}, {text: "write down what to watch and whom to tell"}},
		{{text: "locksteward run --config locksteward.yaml", style: cyan}, {text: "watch it"}},
	}
	if r.opts.Once {
		commands = append(commands, line{{text: "locksteward demo", style: cyan}, {text: "the same live, on a terminal"}})
	}
	out := append([]line{nil, styled(bold, "What next")}, columns(commands)...)
	return append(out, line{
		{text: "  " + strings.Join([]string{"docs/demo.md", "docs/rules/", "docs/lock.md"}, ", ")},
		{text: " say what all of this means.", style: dim},
	})
}
