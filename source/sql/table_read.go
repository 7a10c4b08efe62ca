package sqlsource

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
)

// lockTable is a table of the database that a description fits.
type lockTable struct {
	Table
	rel     relation
	prefix  string
	dialect dialect
	// fields are what is read of the rows that are held: name, holder, since, until, version. Of rows
	// that are asked for by name the columns of compared follow.
	fields   []string
	where    string
	nameExpr string
	// compared are the columns that a release compares.
	compared []column
}

// fit returns the table that a description and a relation make; the error names what does
// not fit.
func fit(d dialect, t Table, rel relation) (*lockTable, error) {
	out := &lockTable{Table: t, rel: rel, prefix: t.Prefix, dialect: d}
	if out.prefix == "" {
		out.prefix = rel.schema + "." + rel.table + ":"
	}
	for _, name := range t.columns() {
		c, ok := rel.column(name)
		if !ok {
			return nil, fmt.Errorf("%w %s: it has no column %q; correct the description, or remove it", ErrTable, out.name(), name)
		}
		if !slices.Contains(out.compared, c) {
			out.compared = append(out.compared, c)
		}
	}
	if err := out.build(); err != nil {
		return nil, err
	}
	return out, nil
}

func (r relation) column(name string) (column, bool) {
	for _, c := range r.columns {
		if strings.EqualFold(c.name, name) {
			return c, true
		}
	}
	return column{}, false
}

// name is the table for people.
func (t *lockTable) name() string { return t.rel.schema + "." + t.rel.table }

func (t *lockTable) build() error {
	d := t.dialect
	var parts []string
	for i, name := range t.Name {
		c, _ := t.rel.column(name)
		text := "coalesce(" + d.text(c) + ", '')"
		if i < len(t.Name)-1 { // so that two names are never the same
			text = "replace(replace(" + text + ", '%', '%25'), ':', '%3A')"
		}
		parts = append(parts, text)
	}
	t.nameExpr = parts[0]
	if len(parts) > 1 {
		t.nameExpr = "concat(" + strings.Join(parts, ", ':', ") + ")"
	}
	since, err := t.time("since", t.Since)
	if err != nil {
		return err
	}
	until, err := t.until()
	if err != nil {
		return err
	}
	holder, version := "null", "null"
	if c, ok := t.rel.column(t.Holder); ok {
		holder = d.text(c)
	}
	if v := d.version(); v != "" {
		version = v
	}
	t.fields = []string{t.nameExpr, holder, since, until, version}
	if t.where, err = t.held(until); err != nil {
		return err
	}
	_, _, err = t.releaseStatement()
	return err
}

// selects returns the statement that reads rows with these fields.
func (t *lockTable) selects(fields []string, where string, limit int) string {
	var list []string
	for i, f := range fields {
		list = append(list, fmt.Sprintf("%s AS f%d", f, i)) // columns may have the names of others
	}
	// The time comes by a LEFT JOIN, so that the answer of a table without rows has it, too.
	return fmt.Sprintf("SELECT n.now, r.* FROM (SELECT %s AS now) n LEFT JOIN (SELECT %s FROM %s WHERE %s LIMIT %d) r ON 1 = 1",
		t.dialect.now(kindNumber), strings.Join(list, ", "), t.from(), where, limit)
}

func (t *lockTable) from() string {
	return t.dialect.quote(t.rel.schema) + "." + t.dialect.quote(t.rel.table)
}

// time is an expression for a column's time in µs.
func (t *lockTable) time(field, name string) (string, error) {
	if name == "" {
		return "null", nil
	}
	c, _ := t.rel.column(name)
	if c.kind != kindTime && c.kind != kindLocalTime && c.kind != kindNumber {
		return "", t.wrongType(field, c, "a time, or a number of milliseconds since 1970")
	}
	return t.dialect.micros(t.dialect.quote(c.name), c.kind), nil
}

func (t *lockTable) wrongType(field string, c column, want string) error {
	return fmt.Errorf("%w %s: %s is column %q of type %s, want %s; name another column", ErrTable, t.name(), field, c.name, c.typ, want)
}

func (t *lockTable) until() (string, error) {
	until, err := t.time("until", t.Until)
	if err != nil || t.Until == "" {
		return until, err
	}
	d, name, err := t.lasts()
	switch {
	case err != nil:
		return "", err
	case d > 0:
		return fmt.Sprintf("(%s + %d)", until, d.Microseconds()), nil
	case name != "":
		c, _ := t.rel.column(name)
		if c.kind != kindNumber {
			return "", t.wrongType("for", c, "a number of milliseconds")
		}
		return fmt.Sprintf("(%s + 1000 * %s)", until, t.dialect.quote(c.name)), nil
	}
	return until, nil
}

// held is the condition of a row that is held.
func (t *lockTable) held(until string) (string, error) {
	terms, err := t.conditions()
	if err != nil {
		return "", err
	}
	var out []string
	for _, term := range terms {
		c, _ := t.rel.column(term.column)
		name := t.dialect.quote(c.name)
		switch {
		case term.is != "true":
			out = append(out, name+" IS "+strings.ToUpper(term.is))
		case c.kind == kindBool:
			out = append(out, name)
		case c.kind == kindNumber:
			out = append(out, name+" <> 0")
		default:
			return "", t.wrongType("held", c, "true or false, or a number")
		}
	}
	switch c, _ := t.rel.column(t.Until); {
	case t.Until == "":
	case t.For == "" && c.kind != kindNumber:
		out = append(out, t.dialect.quote(c.name)+" > "+t.dialect.now(c.kind)) // which an index serves
	default: // without an end it is held as long as it stands
		out = append(out, fmt.Sprintf("%s IS NOT NULL AND coalesce(%s > %s, true)", t.dialect.quote(c.name), until, t.dialect.now(kindNumber)))
	}
	if len(out) == 0 {
		return "1 = 1", nil
	}
	return strings.Join(out, " AND "), nil
}

// maxNames is from how many names on the whole table is read: a statement has a bound.
const maxNames = 100

// read reads the rows that are held; with names, at least those.
func (t *lockTable) read(ctx context.Context, db querier, names []string, limit int, digest locksteward.DigestKey) (snapshot, error) {
	fields, where := slices.Clone(t.fields), t.where
	if len(names) > 0 {
		for _, c := range t.compared {
			fields = append(fields, t.dialect.text(c))
		}
	}
	var args []any
	if len(names) > 0 && len(names) <= maxNames && !slices.ContainsFunc(names, unsendable) {
		var list []string
		for _, name := range names {
			args = append(args, strings.TrimPrefix(name, t.prefix))
			list = append(list, t.dialect.param(len(args)))
		}
		where += " AND " + t.nameExpr + " IN (" + strings.Join(list, ", ") + ")"
	}
	rows, err := db.QueryContext(ctx, t.selects(fields, where, limit+1), args...)
	if err != nil {
		return snapshot{}, fmt.Errorf("read %s: %w", t.name(), err)
	}
	defer func() { _ = rows.Close() }() // what closing says, rows.Err has said
	var out snapshot
	for rows.Next() {
		var now int64
		f := make([]sql.NullString, len(fields))
		into := []any{&now}
		for i := range f {
			into = append(into, &f[i])
		}
		if err := rows.Scan(into...); err != nil {
			return snapshot{}, fmt.Errorf("read %s: %w", t.name(), err)
		}
		out.at = time.UnixMicro(now)
		if f[0].Valid { // else there is no row
			out.holds = append(out.holds, t.hold(out.at, f, digest))
		}
	}
	if err := rows.Err(); err != nil {
		return snapshot{}, fmt.Errorf("read %s: %w", t.name(), err)
	}
	if len(out.holds) > limit {
		return snapshot{}, &tooManyError{what: "table " + t.name(), limit: limit}
	}
	return out, nil
}

// unsendable says that no text column can have a name.
func unsendable(name string) bool { return !utf8.ValidString(name) || strings.ContainsRune(name, 0) }

// tooManyError is a part with more locks than are read at once.
type tooManyError struct {
	what  string
	limit int
}

func (e *tooManyError) Error() string {
	return fmt.Sprintf("%s has more than %d locks at once, which are not read; look whether their holders clean up", e.what, e.limit)
}

// hold makes a lock of a row: name, holder, since, until, version, compared.
func (t *lockTable) hold(at time.Time, f []sql.NullString, digest locksteward.DigestKey) hold {
	name, holder, since, until, version := t.prefix+f[0].String, f[1].String, f[2], f[3], f[4]
	o := locksteward.Observation{
		Key: name, Type: typeRow, At: at, Lifetime: locksteward.LifetimePersistent, TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt,
		Idle: -1, Kind: locksteward.KindLock, Library: t.Library, Confidence: locksteward.ConfidenceHigh, Count: 1, Waiters: -1,
	}
	if t.dirty {
		o.Type = locksteward.TypeDirtyMigration
	}
	token := map[string]string{"holder": holder}
	if us, ok := number(since); ok && us > 0 {
		o.Acquired = time.UnixMicro(us)
	}
	if us, ok := number(until); ok {
		o.Lifetime, o.ExpireAt, o.TTL = locksteward.LifetimeLease, us/1000, time.UnixMicro(us).Sub(at)
	}
	// What a holder that renews does not change distinguishes one hold from the next.
	renews := t.Until != "" || t.Rewritten
	switch {
	case version.Valid && !renews:
		token["version"], token["since"] = version.String, since.String
		o.Identity = locksteward.IdentityStrong
	case since.Valid && !t.Rewritten:
		token["since"] = since.String
		o.Identity = locksteward.IdentityStrong
		if c, _ := t.rel.column(t.Since); c.coarse {
			o.Identity = locksteward.IdentityLineage
		}
	case holder != "":
		o.Identity = locksteward.IdentityLineage
	default:
		o.Identity = locksteward.IdentityNone
	}
	o.TokenDigest = digest.Fields(token)
	o.Holder = t.holderOf(holder)
	o.Size = int64(len(holder))
	return hold{obs: o, row: f[5:], version: version, holder: holder}
}

// number returns a whole number that was read as text.
func number(s sql.NullString) (int64, bool) {
	if !s.Valid {
		return 0, false
	}
	text, _, _ := strings.Cut(s.String, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// typeRow is the type of a lock that is a row of a table.
const typeRow = "row"
