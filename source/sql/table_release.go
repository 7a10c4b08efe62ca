package sqlsource

import (
	"database/sql"
	"slices"
	"strings"
)

// releaseStatement returns what frees one row, with a parameter for each compared column, for its
// version, and for each searched column; "" if rows of the table cannot be freed.
func (t *lockTable) releaseStatement() (statement string, params int, err error) {
	changes, remove, err := t.release()
	if err != nil || len(changes) == 0 && !remove {
		return "", 0, err
	}
	d := t.dialect
	statement = "DELETE FROM " + t.from()
	if !remove {
		var set []string
		for _, a := range changes {
			c, _ := t.rel.column(a.column)
			value, err := t.value(c, a.value)
			if err != nil {
				return "", 0, err
			}
			set = append(set, d.quote(c.name)+" = "+value)
		}
		statement = "UPDATE " + t.from() + " SET " + strings.Join(set, ", ")
	}
	var where []string
	for _, c := range t.compared {
		params++
		where = append(where, d.same(d.text(c), d.param(params)))
	}
	if v := d.version(); v != "" {
		params++
		where = append(where, v+" = "+d.param(params))
	}
	for _, i := range t.searched() {
		params++
		where = append(where, d.same(d.quote(t.compared[i].name), d.param(params)))
	}
	return statement + " WHERE " + strings.Join(where, " AND "), params, nil
}

// searched are the numbers, in compared, of the columns of the name by which an index finds the row.
func (t *lockTable) searched() []int {
	var out []int
	for i, c := range t.compared {
		if t.dialect.searches(c) && slices.ContainsFunc(t.Name, func(name string) bool { return strings.EqualFold(name, c.name) }) {
			out = append(out, i)
		}
	}
	return out
}

func (t *lockTable) value(c column, value string) (string, error) {
	switch {
	case value == "null":
		return "NULL", nil
	case value == "now" && (c.kind == kindTime || c.kind == kindLocalTime || c.kind == kindNumber):
		if c.kind == kindNumber {
			return t.dialect.now(kindNumber) + " / 1000", nil
		}
		return t.dialect.now(c.kind), nil
	case (value == "true" || value == "false") && c.kind == kindBool:
		return value, nil
	case (value == "true" || value == "false") && c.kind == kindNumber:
		return map[string]string{"true": "1", "false": "0"}[value], nil
	}
	return "", t.wrongType("release", c, "one that can be set to "+value)
}

// frees returns the statement that frees a row, and only that row, with its arguments.
func (t *lockTable) frees(h *hold) (statement string, args []any, err error) {
	statement, _, err = t.releaseStatement()
	if err != nil {
		return "", nil, err
	}
	for _, v := range h.row {
		args = append(args, v)
	}
	if t.dialect.version() != "" {
		args = append(args, h.version)
	}
	for _, i := range t.searched() {
		args = append(args, h.row[i])
	}
	return statement, args, nil
}

// shows is frees for people: who holds the lock is masked, since the text may be all that proves it.
func (t *lockTable) shows(h *hold) (statement string, args []string) {
	statement, values, err := t.frees(h)
	if err != nil {
		return "", nil
	}
	for _, v := range values {
		text := "NULL"
		if s, ok := v.(sql.NullString); ok && s.Valid {
			text = s.String
		}
		if text == h.holder && text != "" {
			text = "•••"
		}
		args = append(args, text)
	}
	return statement, args
}
