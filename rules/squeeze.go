package rules

import (
	"encoding/binary"

	"github.com/locksteward/locksteward"
)

// The texts of a rule differ from lock to lock by names and numbers: each line is
// kept as what it has in common with a line of the first finding of its kind, from
// the beginning and from the end, and what stands between. Per line that is
//
//	line<<1 | 1                                         the same line
//	line<<1, bytes before, bytes behind, length, bytes  another one
//
// in numbers of variable length, behind how many lines of evidence and of
// counter-evidence there are (each plus one; 0 for nil).

// linesOf are all texts of a finding that are of its own.
func linesOf(f locksteward.Finding) []string {
	out := make([]string, 0, 2+len(f.Evidence)+len(f.CounterEvidence))
	out = append(out, f.Summary.EN, f.Summary.ZH)
	return append(append(out, f.Evidence...), f.CounterEvidence...)
}

// squeeze makes lines smaller, which are linesOf a finding with this evidence.
func (k *kind) squeeze(lines, evidence, counter []string) string {
	var room [256]byte
	out := binary.AppendUvarint(room[:0], count1(evidence))
	out = binary.AppendUvarint(out, count1(counter))
	for i, line := range lines {
		ref, before, behind := k.closest(i, line)
		if before == len(line) && before == len(k.lines[ref]) {
			out = binary.AppendUvarint(out, uint64(ref)<<1|1)
			continue
		}
		out = binary.AppendUvarint(out, uint64(ref)<<1)
		out = binary.AppendUvarint(out, uint64(before))
		out = binary.AppendUvarint(out, uint64(behind))
		between := line[before : len(line)-behind]
		out = append(binary.AppendUvarint(out, uint64(len(between))), between...)
	}
	return string(out)
}

func count1(list []string) uint64 {
	if list == nil {
		return 0
	}
	return uint64(len(list)) + 1
}

// closest is the line of the first finding that has most in common with one: that of
// the same number unless it has little.
func (k *kind) closest(i int, line string) (ref, before, behind int) {
	if i < len(k.lines) {
		ref = i
		before, behind = common(k.lines[i], line)
	}
	if before+behind > 0 && before+behind >= len(line)/3 {
		return ref, before, behind
	}
	for n, other := range k.lines {
		if a, b := common(other, line); a+b > before+behind {
			ref, before, behind = n, a, b
		}
	}
	return ref, before, behind
}

// common is how many bytes two texts share at their beginnings and, beyond these, at
// their ends.
func common(a, b string) (before, behind int) {
	most := min(len(a), len(b))
	for before < most && a[before] == b[before] {
		before++
	}
	for behind < most-before && a[len(a)-1-behind] == b[len(b)-1-behind] {
		behind++
	}
	return before, behind
}

// expand is the inverse of squeeze.
func (k *kind) expand(text string) (summary locksteward.Text, evidence, counter []string) {
	in := reader{text}
	evidence, counter = in.list(), in.list()
	summary.EN, summary.ZH = in.line(k), in.line(k)
	for i := range evidence {
		evidence[i] = in.line(k)
	}
	for i := range counter {
		counter[i] = in.line(k)
	}
	return summary, evidence, counter
}

// reader reads what squeeze wrote.
type reader struct{ rest string }

func (r *reader) number() int {
	n, shift := 0, 0
	for i := range len(r.rest) {
		b := r.rest[i]
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			r.rest = r.rest[i+1:]
			break
		}
		shift += 7
	}
	return n
}

func (r *reader) list() []string {
	n := r.number()
	if n == 0 {
		return nil
	}
	return make([]string, n-1)
}

func (r *reader) line(k *kind) string {
	at := r.number()
	ref := k.lines[at>>1]
	if at&1 == 1 {
		return ref
	}
	before, behind, length := r.number(), r.number(), r.number()
	between := r.rest[:length]
	r.rest = r.rest[length:]
	return ref[:before] + between + ref[len(ref)-behind:]
}
