package expr

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
)

// Error is one problem of an expression, with its place.
type Error struct {
	Source string
	// Line and Column count from 1, the column in characters.
	Line, Column int
	Problem      string
	Remedy       string
}

// Error is the problem and what to do, then the line with a caret below the
// place.
func (e *Error) Error() string {
	text := e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	if caret := e.Caret(); caret != "" {
		text += "\n" + caret
	}
	return text
}

// maxShown is how much of a long line is shown around the caret.
const maxShown = 100

// Caret shows the line of the expression and marks the place below it.
func (e *Error) Caret() string {
	lines := strings.Split(e.Source, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return ""
	}
	line := []rune(strings.Map(printable, lines[e.Line-1]))
	if len(line) == 0 {
		return ""
	}
	at := min(max(e.Column-1, 0), len(line))
	before, after := "", ""
	if from := at - maxShown/2; len(line) > maxShown && from > 0 {
		line, at, before = line[from:], at-from+1, "…"
	}
	if len(line) > maxShown {
		line, after = line[:maxShown], "…"
	}
	return "    " + before + string(line) + after + "\n    " + strings.Repeat(" ", at) + "^"
}

// printable keeps every character one column wide on a terminal.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// UnknownError says which fact of a lock is not known.
type UnknownError struct{ Fact string }

// Error names the fact.
func (e *UnknownError) Error() string { return e.Fact + " is not known" }

// explain turns the library's issues into errors in our words, one for each
// place.
func explain(source string, issues *cel.Issues) error {
	var errs []error
	seen := map[[2]int]bool{}
	for _, issue := range issues.Errors() {
		if len(errs) > 0 && strings.HasPrefix(issue.Message, syntax) {
			break // the next syntax errors follow from the first
		}
		line, column := issue.Location.Line(), issue.Location.Column()+1
		if line < 1 {
			line, column = 1, 1
		}
		if at := [2]int{line, column}; seen[at] || len(errs) >= maxErrors {
			continue
		} else {
			seen[at] = true
		}
		e := &Error{Source: source, Line: line, Column: column}
		e.Problem, e.Remedy = inOurWords(issue.Message)
		if noField.MatchString(issue.Message) {
			e.Column++ // the library points at the dot
		}
		errs = append(errs, e)
	}
	if len(errs) == 0 {
		return &Error{Source: source, Line: 1, Column: 1, Problem: fmt.Sprint(issues.Err())}
	}
	return errors.Join(errs...)
}

// maxErrors is how many problems of one expression are reported: the rest usually
// follows from them.
const maxErrors = 5
