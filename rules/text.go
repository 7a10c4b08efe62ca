package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// text formats both languages of a message with the same arguments.
func text(en, zh string, args ...any) locksteward.Text {
	return locksteward.Text{EN: fmt.Sprintf(en, args...), ZH: fmt.Sprintf(zh, args...)}
}

// phrase is [text] with parts that are in both languages themselves.
func phrase(en, zh string, parts ...any) locksteward.Text {
	enParts, zhParts := slices.Clone(parts), slices.Clone(parts)
	for i, part := range parts {
		if t, ok := part.(locksteward.Text); ok {
			enParts[i], zhParts[i] = t.EN, t.ZH
		}
	}
	return locksteward.Text{EN: fmt.Sprintf(en, enParts...), ZH: fmt.Sprintf(zh, zhParts...)}
}

// longest is the longest duration that is printed as such. A key may live for longer
// than a time.Duration holds, so that what is longer need not be exact.
const longest = 100 * 365 * 24 * time.Hour

// dur prints a duration as exactly as a person needs it: whole seconds from ten
// on, tenths below, milliseconds below one; no "0s" behind minutes or hours.
func dur(d time.Duration) string {
	switch abs := d.Abs(); {
	case d > longest:
		return ">" + dur(longest)
	case abs >= 10*time.Second:
		d = d.Round(time.Second)
	case abs >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	s := d.String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}

// at prints a server time.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// count prints n things in English, with the noun in the right number.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// counted is count in both languages; zh is the measure word, and what is counted.
func counted[N int | int64](n N, one, many, zh string) locksteward.Text {
	return locksteward.Text{EN: count(n, one, many), ZH: fmt.Sprintf("%d %s", n, zh)}
}

// list puts parts of a line behind each other.
func list(parts []locksteward.Text) locksteward.Text {
	var en, zh []string
	for _, p := range parts {
		en, zh = append(en, p.EN), append(zh, p.ZH)
	}
	return locksteward.Text{EN: strings.Join(en, ", "), ZH: strings.Join(zh, "，")}
}

// names lists what has the same name in both languages.
func names(all []string) locksteward.Text {
	return locksteward.Text{EN: strings.Join(all, ", "), ZH: strings.Join(all, "、")}
}

// aside is parts in brackets behind what they explain; empty without any.
func aside(parts []locksteward.Text) locksteward.Text {
	if len(parts) == 0 {
		return locksteward.Text{}
	}
	return phrase(" (%s)", "（%s）", list(parts))
}

// join drops empty lines, so that evidence can be listed without branches.
func join(lines ...locksteward.Text) []locksteward.Text {
	var out []locksteward.Text
	for _, l := range lines {
		if l.EN != "" {
			out = append(out, l)
		}
	}
	return out
}
