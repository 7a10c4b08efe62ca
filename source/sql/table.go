package sqlsource

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Table describes a table whose rows are locks. Column names are matched without case.
type Table struct {
	// Library is the lock library that uses the table, as screens and metrics name it.
	Library string `yaml:"library"`
	// Table is the table's name, with or without a schema. Without one, each table of
	// that name in the database is meant.
	Table string `yaml:"table"`
	// Prefix begins the names of its locks; "" is "SCHEMA.TABLE:".
	Prefix string `yaml:"prefix"`
	// Name are the columns whose values, joined by ":", name a lock behind the prefix.
	Name []string `yaml:"name"`
	// Holder is the column that says who holds the lock; "" if none does.
	Holder string `yaml:"holder"`
	// Since and Until are the columns that say since when and until when it is held: times,
	// or numbers of milliseconds since 1970. Times without a zone are UTC. A row whose Until
	// has passed is no lock. Without Until a row is held until somebody changes it.
	Since string `yaml:"since"`
	Until string `yaml:"until"`
	// For is added to Until: a duration such as "4h", or a column with milliseconds.
	For string `yaml:"for"`
	// Held is when a row is held, beside Until: "COLUMN is true", "COLUMN is null" or
	// "COLUMN is not null", joined by "and". "" is always.
	Held string `yaml:"held"`
	// Rewritten says that the holder writes the row anew while it holds the lock, Since
	// included.
	Rewritten bool `yaml:"rewritten"`
	// Release is how a row is freed, as its library does it: "delete", or "set COLUMN = VALUE"
	// with commas between several, where VALUE is null, now, true or false. "" refuses releases.
	Release string `yaml:"release"`

	// noRelease is why Release is empty, in words for people.
	noRelease string
	// host says that Holder is the name of a host.
	host bool
	// dirty says that its rows are not locks but migrations that failed half-way.
	dirty bool
}

// nameShape is what a name of a schema, table or column may look like here. Names are quoted
// in statements, so this is not for safety: others are more likely mistakes.
var nameShape = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_$ -]{0,62}$`)

// Validate reports the first field whose value makes no sense, and what to write instead.
// Whether the columns exist is known when the table is read first.
func (t Table) Validate() error {
	schema, table := t.split()
	switch {
	case t.Library == "":
		return field("library", t.Library, "name the library or application that takes the locks")
	case !nameShape.MatchString(table) || schema != "" && !nameShape.MatchString(schema):
		return field("table", t.Table, "write TABLE or SCHEMA.TABLE")
	case len(t.Name) == 0:
		return field("name", "", "list the columns that name a lock, most often the primary key")
	case t.For != "" && t.Until == "":
		return field("for", t.For, "it is added to until: set until, or remove it")
	case len(t.Prefix) > maxPrefix:
		return field("prefix", t.Prefix, fmt.Sprintf("use at most %d bytes", maxPrefix))
	}
	for name, column := range map[string]string{"holder": t.Holder, "since": t.Since, "until": t.Until} {
		if column != "" && !nameShape.MatchString(column) {
			return field(name, column, "write the name of one column")
		}
	}
	for _, column := range t.Name {
		if !nameShape.MatchString(column) {
			return field("name", column, "write the names of columns")
		}
	}
	if _, column, err := t.lasts(); err != nil || column != "" && !nameShape.MatchString(column) {
		return field("for", t.For, `write a positive duration such as "4h", or a column with milliseconds`)
	}
	if _, err := t.conditions(); err != nil {
		return err
	}
	_, _, err := t.release()
	return err
}

// maxPrefix bounds Table.Prefix, in bytes.
const maxPrefix = 200

// ErrTable is wrapped by what is wrong with the description of a table.
var ErrTable = errors.New("lock table")

func field(name, value, remedy string) error {
	return fmt.Errorf("%w: %s %q: %s", ErrTable, name, value, remedy)
}

// split returns the schema, "" for any, and the table.
func (t Table) split() (schema, table string) {
	if s, name, ok := strings.Cut(t.Table, "."); ok {
		return s, name
	}
	return "", t.Table
}

// lasts returns what For adds to Until: a duration or a column.
func (t Table) lasts() (time.Duration, string, error) {
	if t.For == "" {
		return 0, "", nil
	}
	if t.For[0] < '0' || t.For[0] > '9' {
		return 0, t.For, nil
	}
	d, err := time.ParseDuration(t.For)
	return d, "", err
}

// condition is one term of Held.
type condition struct {
	column string
	is     string // true, null or not null
}

func (t Table) conditions() ([]condition, error) {
	if t.Held == "" {
		return nil, nil
	}
	var out []condition
	for term := range strings.SplitSeq(t.Held, " and ") {
		column, is, ok := strings.Cut(strings.TrimSpace(term), " is ")
		c := condition{column: strings.TrimSpace(column), is: strings.TrimSpace(is)}
		if !ok || !nameShape.MatchString(c.column) || !slices.Contains([]string{"true", "null", "not null"}, c.is) {
			return nil, field("held", t.Held, `write "COLUMN is true", "COLUMN is null" or "COLUMN is not null"`)
		}
		out = append(out, c)
	}
	return out, nil
}

// assignment is one change of Release.
type assignment struct {
	column string
	value  string // null, now, true or false
}

// release returns the changes that free a row; remove says that it is deleted.
func (t Table) release() (changes []assignment, remove bool, err error) {
	text := strings.TrimSpace(t.Release)
	list, set := strings.CutPrefix(text, "set ")
	switch {
	case text == "":
		return nil, false, nil
	case text == "delete":
		return nil, true, nil
	case !set:
		return nil, false, field("release", t.Release, `write "delete" or "set COLUMN = VALUE"`)
	}
	for term := range strings.SplitSeq(list, ",") {
		column, value, ok := strings.Cut(term, "=")
		a := assignment{column: strings.TrimSpace(column), value: strings.TrimSpace(value)}
		if !ok || !nameShape.MatchString(a.column) || !slices.Contains([]string{"null", "now", "true", "false"}, a.value) {
			return nil, false, field("release", t.Release, `after "set" write COLUMN = VALUE, where VALUE is null, now, true or false`)
		}
		changes = append(changes, a)
	}
	return changes, false, nil
}

// columns returns all columns that the description names.
func (t Table) columns() []string {
	out := slices.Clone(t.Name)
	_, lasts, _ := t.lasts()
	for _, c := range []string{t.Holder, t.Since, t.Until, lasts} {
		if c != "" {
			out = append(out, c)
		}
	}
	held, _ := t.conditions()
	for _, c := range held {
		out = append(out, c.column)
	}
	changes, _, _ := t.release()
	for _, c := range changes {
		out = append(out, c.column)
	}
	return out
}
