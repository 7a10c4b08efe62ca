package expr

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/locksteward/locksteward/internal/suggest"
)

// The checker's messages, by shape; what is not here is shown as it comes.
var (
	noField     = regexp.MustCompile(`^undefined field '([^']*)'`)
	noName      = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noOverload  = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'$`)
	badToken    = regexp.MustCompile(`(?s)^Syntax error: token recognition error at: '(.*)'$`)
	unexpected  = regexp.MustCompile(`^Syntax error: (?:extraneous|mismatched) input '(.*)' expecting`)
	noViable    = regexp.MustCompile(`^Syntax error: no viable alternative at input '(.*)'$`)
	badArgument = regexp.MustCompile(`^invalid (\w+) argument$`)
	notOneType  = regexp.MustCompile(`^expected type '(.*)' but found '(.*)'$`)
)

const syntax = "Syntax error: "

// inOurWords says what is wrong and what to do.
func inOurWords(message string) (problem, remedy string) {
	if m := noField.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("there is no fact %q here", m[1]), nearest(m[1], paths())
	}
	if m := noName.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("unknown name %q", m[1]), nearest(m[1], names())
	}
	if m := noOverload.FindStringSubmatch(message); m != nil {
		return mismatch(m[1], m[2])
	}
	if m := badToken.FindStringSubmatch(message); m != nil {
		return unreadable(m[1])
	}
	if m := unexpected.FindStringSubmatch(message); m != nil {
		if m[1] == "<EOF>" {
			return "the expression ends too early", "something is missing behind it"
		}
		return fmt.Sprintf("%q does not belong here", m[1]), "an operator such as && may be missing before it"
	}
	if m := noViable.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("cannot read %q", m[1]), ""
	}
	if m := badArgument.FindStringSubmatch(message); m != nil {
		switch m[1] {
		case "duration":
			return "is no duration", "write one such as duration('90s'), duration('5m') or duration('1h30m')"
		case "timestamp":
			return "is no time", "write one such as timestamp('2026-01-01T00:00:00Z')"
		case "matches":
			return "is no regular expression", "write RE2 syntax, with \\\\ for a backslash"
		}
	}
	if m := notOneType.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("is of type %s where %s is wanted", plain(m[2]), plain(m[1])), "compare it with something, or write elements of one type"
	}
	if strings.Contains(message, "recursion") {
		return fmt.Sprintf("nests deeper than %d", maxDepth), "split it into several rules"
	}
	if strings.HasPrefix(message, "comprehension exceeds nesting limit") {
		return "exists, all or filter inside another one", "use one at a time"
	}
	return strings.TrimPrefix(message, syntax), ""
}

// unreadable is text that is no part of the language.
func unreadable(text string) (problem, remedy string) {
	switch {
	case strings.HasPrefix(text, "'"), strings.HasPrefix(text, `"`):
		return "a text is not closed", "write the closing quote"
	case strings.HasPrefix(text, "="):
		return fmt.Sprintf("cannot read %q", strings.TrimSpace(text)), "write == to compare"
	case strings.HasPrefix(text, "&"), strings.HasPrefix(text, "|"):
		return fmt.Sprintf("cannot read %q", strings.TrimSpace(text)), "write && or ||"
	default:
		return fmt.Sprintf("cannot read %q", strings.TrimSpace(text)), ""
	}
}

// mismatch is a function or operator on types that it does not take.
func mismatch(id, operands string) (problem, remedy string) {
	name := id
	for _, f := range Functions() {
		if f.id == id {
			name = f.Name
		}
	}
	operands = strings.TrimSuffix(strings.TrimPrefix(operands, "("), ")")
	operands = strings.ReplaceAll(plain(operands), ").(", ", ")
	switch {
	case strings.Contains(operands, "timestamp") && strings.Contains(operands, "duration"):
		remedy = "a time minus a time is a duration: now - … > duration('1h')"
	case strings.Contains(operands, "timestamp"):
		remedy = "write a time as timestamp('2026-01-01T00:00:00Z'), or compare now - … with a duration"
	case strings.Contains(operands, "duration"):
		remedy = "write a duration as duration('2h')"
	case name == "&&" || name == "||" || name == "!":
		remedy = "each side must be bool"
	}
	return fmt.Sprintf("%s does not take (%s)", name, operands), remedy
}

// plain names types as expressions do.
func plain(types string) string {
	return strings.NewReplacer("google.protobuf.Duration", "duration", "google.protobuf.Timestamp", "timestamp").Replace(types)
}

// paths and names are what a misspelt word may have meant.
func paths() []string {
	var out []string
	for _, s := range Sections() {
		for _, f := range s.Facts {
			out = append(out, f.Path)
		}
	}
	return out
}

func names() []string {
	out := []string{"lock", "class", "now", "target"}
	for _, f := range Functions() {
		if f.Name[0] >= 'a' && f.Name[0] <= 'z' {
			out = append(out, f.Name)
		}
	}
	// A fact without its variable: age for lock.age.
	return append(out, paths()...)
}

// nearest names the word that was probably meant, by its whole path or the last
// part of it.
func nearest(got string, words []string) string {
	best := suggest.Nearest(got, words, func(w string) []string { return []string{w, w[strings.LastIndexByte(w, '.')+1:]} })
	if best == "" {
		return "docs/expressions.md lists what there is"
	}
	return fmt.Sprintf("did you mean %s?", best)
}
