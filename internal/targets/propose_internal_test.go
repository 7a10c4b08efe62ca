package targets

import (
	"strings"
	"testing"
)

// Each question is asked once, again with the next sweep if that failed, and not when it
// holds no longer.
func TestProposalsAreAskedOnce(t *testing.T) {
	t.Parallel()
	p := proposals{fresh: make(chan struct{}, 1)}
	of := func(names string) (out []question) {
		for name := range strings.FieldsSeq(names) {
			out = append(out, question{byRule, name, name})
		}
		return out
	}
	asks := func(failing string) (out string) {
		for {
			q, ok := p.next()
			if !ok {
				return strings.TrimSpace(out)
			}
			out += " " + q.id
			p.done(q, strings.Contains(failing, q.id))
		}
	}
	for _, step := range []struct{ sweep, watch, failing, want string }{
		{sweep: "a b", want: "a b"},
		{sweep: "a b c", failing: "c", want: "c"},
		{sweep: "a b c", watch: "a d", want: "c d"},
		{sweep: "a", want: ""},
		{sweep: "a b", want: "b"},
		{watch: "e e a", want: "e"},
	} {
		if step.sweep != "" {
			p.replace(byRule, of(step.sweep))
		}
		for _, q := range of(step.watch) {
			p.add(q)
		}
		if got := asks(step.failing); got != step.want {
			t.Errorf("%+v: asked %q", step, got)
		}
	}
	p.replace(byRule, of("x y"))
	p.replace(byRule, of("y"))
	p.replace(byExpression, []question{{byExpression, "z", "z"}})
	if got := asks(""); got != "y z" {
		t.Errorf("asked %q, not what holds", got)
	}
}
