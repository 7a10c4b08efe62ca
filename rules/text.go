package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// message is [locksteward.NewMessage].
func message(id string, args ...any) locksteward.Message { return locksteward.NewMessage(id, args...) }

// english renders a message for the reason of a verdict.
func english(m locksteward.Message) string { return catalogue.Text("en", m) }

// dur prints a duration for the reason of a verdict.
func dur(d time.Duration) string { return catalogue.Duration(d) }

// at prints a server time for the reason of a verdict.
func at(t time.Time) string { return catalogue.Time(t) }

// count prints n things in English, with the noun in the right number.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// list joins parts of a line.
func list(parts []locksteward.Message) locksteward.Message {
	args := make([]any, len(parts))
	for i, part := range parts {
		args[i] = part
	}
	return message("list", args...)
}

// names joins names, which are the same in both languages.
func names(all []locksteward.Arg) locksteward.Message {
	return locksteward.Message{ID: "names", Args: all}
}

// lockNames returns the names of locks.
func lockNames(keys []string) []locksteward.Arg {
	var out []locksteward.Arg
	for _, key := range keys {
		out = append(out, locksteward.LockName(key))
	}
	return out
}

// textArgs returns names that are no names of locks.
func textArgs(all []string) []locksteward.Arg {
	var out []locksteward.Arg
	for _, text := range all {
		out = append(out, locksteward.Arg{Kind: locksteward.ArgText, Text: text})
	}
	return out
}

// inBrackets puts parts in brackets behind what they explain; it is empty without any.
func inBrackets(parts []locksteward.Message) locksteward.Message {
	if len(parts) == 0 {
		return locksteward.Message{}
	}
	return message("brackets", list(parts))
}

// join drops empty lines, so that evidence can be listed without branches.
func join(lines ...locksteward.Message) []locksteward.Message {
	var out []locksteward.Message
	for _, l := range lines {
		if l.ID != "" {
			out = append(out, l)
		}
	}
	return out
}
