package faults

import "slices"

// Part is who must do something about a fault.
type Part string

// The parts of the product.
const (
	Library Part = "library" // package lock and those below it
	Agent   Part = "agent"   // everything else
)

// Row is one fault and what is expected of whom.
type Row struct {
	Number  int    // 1 and up, without a hole; never given to another fault
	Section string // the group of faults it belongs to
	Fault   string
	Library string // what the library does; empty if it has no part in it
	Agent   string // what the agent does; empty if it has no part in it
}

// Parts returns who must do something about the fault, the library first.
func (r Row) Parts() []Part {
	var out []Part
	if r.Library != "" {
		out = append(out, Library)
	}
	if r.Agent != "" {
		out = append(out, Agent)
	}
	return out
}

// Expect returns what is expected of p.
func (r Row) Expect(p Part) string {
	if p == Library {
		return r.Library
	}
	return r.Agent
}

// Rows returns all faults, by number.
func Rows() []Row {
	var out []Row
	for _, s := range []struct {
		name string
		rows []Row
	}{
		{"Process and time", processRows()},
		{"Network and connection", networkRows()},
		{"State of the server", serverRows()},
		{"Shape of the data", dataRows()},
		{"Gaps in what is seen", observationRows()},
		{"Requests and releases", releaseRows()},
		{"What the agent keeps", durabilityRows()},
	} {
		for _, r := range s.rows {
			r.Section = s.name
			out = append(out, r)
		}
	}
	return out
}

// Gap is a part of a row that no test shows, or not all of it.
type Gap struct {
	Row  int
	Part Part
	Some bool   // tests show some of it: the row is covered in part
	Why  string // what is missing and why, in one or two sentences; docs/limits.md has them too
}

// Gaps returns what is not covered, by row.
func Gaps() []Gap {
	out := slices.Concat(serverGaps(), agentGaps())
	slices.SortFunc(out, func(a, b Gap) int { return a.Row - b.Row })
	return out
}
