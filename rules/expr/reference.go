package expr

import "cel.dev/cel-go/cel"

// Fact is one fact that expressions can name.
type Fact struct {
	Path    string // "lock.age"
	Type    string // as CEL calls it
	Doc     string
	Example string // an expression over it of type bool
}

// Section is a group of facts with what they have in common.
type Section struct {
	Path  string // "lock.holder"; "" for the variables without fields
	Doc   string
	Facts []Fact
}

// Sections list all facts, for docs/expressions.md and for completion.
func Sections() []Section {
	out := []Section{{Doc: "Beside the lock.", Facts: []Fact{
		{"now", "timestamp", "The server's time of the look.", "now.getHours('Europe/Berlin') >= 8"},
		{"target", "string", "The name of the target.", "target == 'orders'"},
	}}}
	for _, o := range objects() {
		s := Section{Path: o.path, Doc: o.doc}
		for _, f := range o.fields {
			s.Facts = append(s.Facts, Fact{o.path + "." + f.name, typeName(f.typ), f.doc, f.example})
		}
		out = append(out, s)
	}
	return out
}

func typeName(t *cel.Type) string {
	switch {
	case t.IsExactType(cel.DurationType):
		return "duration"
	case t.IsExactType(cel.TimestampType):
		return "timestamp"
	case t.Kind() == cel.StructKind:
		return "facts"
	default:
		return t.String()
	}
}

// Function is one operator, function or macro of the language.
type Function struct {
	Name    string // as it is written
	Macro   bool
	Doc     string
	Example string // an expression with it of type bool

	id string // as the library calls it
}

// Functions list all there is; what is not here is not in the language.
func Functions() []Function {
	return []Function{
		{"&&", false, "And. False decides alone; else what is not known makes the whole not known.", "lock.has_ttl && lock.ttl > duration('1h')", "_&&_"},
		{"||", false, "Or. True decides alone.", "lock.shared_token || lock.identity == 'none'", "_||_"},
		{"!", false, "Not.", "!lock.has_ttl", "!_"},
		{"? :", false, "If, then, else.", "lock.has_ttl ? lock.ttl > duration('1h') : true", "_?_:_"},
		{"==", false, "Equal.", "lock.type == 'string'", "_==_"},
		{"!=", false, "Not equal.", "lock.class != 'default'", "_!=_"},
		{"<", false, "Less; between two of one type.", "lock.ttl < duration('5s')", "_<_"},
		{"<=", false, "Less or equal.", "lock.count <= 1", "_<=_"},
		{">", false, "Greater.", "lock.age > duration('10m')", "_>_"},
		{">=", false, "Greater or equal.", "lock.waiters >= 10", "_>=_"},
		{"+", false, "Sum of numbers, durations, a time and a duration; joins texts and lists.", "lock.age > class.expect + duration('1m')", "_+_"},
		{"-", false, "Difference; of two times it is a duration.", "now - lock.first_seen > duration('1h')", "_-_"},
		{"*", false, "Product of two numbers.", "lock.waiters * 2 > 10", "_*_"},
		{"/", false, "Quotient of two numbers.", "lock.renewals / 2 > 10", "_/_"},
		{"%", false, "Remainder of two numbers.", "lock.renewals % 2 == 0", "_%_"},
		{"-x", false, "The negative of a number.", "lock.db > -1", "-_"},
		{"in", false, "One of a list.", "lock.class in ['orders', 'batch']", "@in"},
		{"[ ]", false, "One element of a list, from 0.", "lock.claim.holding[0] == 'lock:a'", "_[_]"},
		{"size", false, "Characters of a text, elements of a list.", "size(lock.key) > 200", "size"},
		{"startsWith", false, "A text begins with another.", "lock.key.startsWith('lock:')", "startsWith"},
		{"endsWith", false, "A text ends with another.", "lock.key.endsWith(':lock')", "endsWith"},
		{"contains", false, "A text contains another.", "lock.key.contains('order')", "contains"},
		{"matches", false, "A regular expression (RE2) matches some part of a text; `^…$` for all of it.", "lock.key.matches('^lock:[0-9]+$')", "matches"},
		{"duration", false, "A duration from a text such as '90s', '5m' or '1h30m'.", "lock.age > duration('1h30m')", "duration"},
		{"timestamp", false, "A time from a text (RFC 3339).", "now > timestamp('2026-01-01T00:00:00Z')", "timestamp"},
		{"int", false, "A whole number: of a duration the nanoseconds, of a time the seconds since 1970, of a text its digits.", "int(lock.holder.session) > 100", "int"},
		{"double", false, "A number with a fraction.", "double(lock.waiters) * 1.5 > 10.0", "double"},
		{"string", false, "Anything simple as text.", "string(lock.db) == '0'", "string"},
		{"getHours", false, "The hour of a time, from 0, in UTC or the named time zone; of a duration all its hours.", "now.getHours('Asia/Shanghai') < 6", "getHours"},
		{"getMinutes", false, "The minute of a time; of a duration all its minutes.", "lock.age.getMinutes() > 90", "getMinutes"},
		{"getSeconds", false, "The second of a time; of a duration all its seconds.", "lock.age.getSeconds() > 30", "getSeconds"},
		{"getDayOfWeek", false, "The day of the week, Sunday is 0.", "now.getDayOfWeek() in [0, 6]", "getDayOfWeek"},
		{"getDayOfMonth", false, "The day of the month, from 0.", "now.getDayOfMonth() == 0", "getDayOfMonth"},
		{"has", true, "A fact is known. It takes absence for an answer: see above.", "has(lock.fence) && lock.fence > 10", "has"},
		{"exists", true, "Some element of a list is so.", "lock.claim.holding.exists(k, k == 'lock:a')", "exists"},
		{"all", true, "Every element of a list is so.", "lock.claim.holding.all(k, k.startsWith('lock:'))", "all"},
		{"filter", true, "The elements that are so.", "size(lock.claim.holding.filter(k, k.startsWith('lock:'))) > 3", "filter"},
	}
}
