// Package catalogue has the sentences of findings and of notifications in English and
// Chinese, and renders a [locksteward.Message] in either. Each subject has a file.
package catalogue

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

// sentence is one entry of the catalogue. EN and ZH are formats of package fmt whose
// verbs are %s and %q for texts, names, times and durations, and %d for counts; both
// have the same.
type sentence struct {
	EN string
	ZH string
	// One is EN where the first argument is the count 1.
	One string
	// Joins says that the message has any number of arguments, between which EN or ZH
	// stands.
	Joins bool
}

// sentences are entries by their ids.
type sentences map[string]sentence

// files are the sentences of each file.
var files = []sentences{
	countSentences, holdSentences, holderSentences, listSentences, lockSentences, migrationSentences, notificationSentences, releaseSentences, renewalSentences,
	resolutionSentences, serverSentences, ttlSentences, waitSentences, wordSentences,
}

// all are the sentences of all files.
var all = merge(files)

func merge(files []sentences) map[string]entry {
	out := map[string]entry{}
	for _, file := range files {
		for id, s := range file {
			out[id] = entry{s, max(arity(s.EN), arity(s.ZH))}
		}
	}
	return out
}

// entry is a sentence with the number of its arguments.
type entry struct {
	sentence
	arity int
}

// verb matches a verb of a format, with the number of its argument.
var verb = regexp.MustCompile(`%(?:\[(\d+)\])?[sqd]`)

// arity is the highest number of an argument in a format.
func arity(format string) int {
	highest := 0
	for i, m := range verb.FindAllStringSubmatch(format, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			n = i + 1
		}
		highest = max(highest, n)
	}
	return highest
}

// IDs returns the ids of all sentences.
func IDs() iter.Seq[string] { return maps.Keys(all) }

// Text renders a message in lang ("zh", else English). An id that the catalogue does
// not have, from another version, is shown with its arguments.
func Text(lang string, m locksteward.Message) string {
	return Naming(lang, m, func(name string) string { return name })
}

// Word returns a word of notifications in lang. An unknown one, such as a status of a
// later version, is returned as it is.
func Word(lang, word string) string {
	if _, known := all["word."+word]; !known {
		return word
	}
	return Text(lang, locksteward.NewMessage("word."+word))
}

// Naming is [Text] with show(name) in place of the name of each lock. The name is as
// [locksteward.DisplayKey] writes it.
func Naming(lang string, m locksteward.Message, show func(name string) string) string {
	if m.ID == "" {
		return ""
	}
	values := make([]any, len(m.Args))
	for i, arg := range m.Args {
		values[i] = value(lang, arg, show)
	}
	if m.ID == locksteward.LiteralID {
		return literal(lang, values)
	}
	e, known := all[m.ID]
	format := e.EN
	switch {
	case lang == "zh":
		format = e.ZH
	case e.One != "" && len(m.Args) > 0 && m.Args[0].Number == 1:
		format = e.One
	}
	switch {
	case e.Joins:
		return joined(values, format)
	case !known || e.arity != len(values):
		return m.ID + " (" + joined(values, ", ") + ")"
	case len(values) == 0 || !strings.Contains(format, "%"):
		return format
	default:
		return fmt.Sprintf(format, values...)
	}
}

// literal returns the text in lang of a message that has its text as arguments.
func literal(lang string, texts []any) string {
	switch {
	case len(texts) == 0:
		return ""
	case lang == "zh" && texts[len(texts)-1] != "":
		return fmt.Sprint(texts[len(texts)-1])
	default:
		return fmt.Sprint(texts[0])
	}
}

func joined(values []any, separator string) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(separator)
		}
		fmt.Fprint(&b, v)
	}
	return b.String()
}

// value returns what fmt formats of an argument.
func value(lang string, arg locksteward.Arg, show func(name string) string) any {
	switch arg.Kind {
	case locksteward.ArgLock:
		return show(arg.Text)
	case locksteward.ArgCount:
		return arg.Number
	case locksteward.ArgDuration:
		return Duration(arg.Duration())
	case locksteward.ArgTime:
		return Time(arg.Time())
	case locksteward.ArgMessage:
		if arg.Message == nil {
			return ""
		}
		return Naming(lang, *arg.Message, show)
	default:
		return arg.Text
	}
}
