package rules

import (
	"encoding/binary"

	"github.com/locksteward/locksteward"
)

// The texts of a rule differ from lock to lock by names and numbers: each is kept as
// what it has in common with a text of the first finding of its kind, each language
// with the same language, from the beginning and from the end, and what stands
// between. Per text that is
//
//	text<<1 | 1        the same text in both languages
//	text<<1, EN, ZH    another one, of which each line is
//
//	bytes before, bytes behind, length + 1, bytes
//	bytes before, bytes behind, 0    the bytes are those of EN; in EN itself: none
//
// in numbers of variable length, behind how many lines of evidence and of
// counter-evidence there are (each plus one; 0 for nil).

// textsOf are all texts of a finding that are of its own.
func textsOf(f locksteward.Finding) []locksteward.Text {
	out := make([]locksteward.Text, 0, 1+len(f.Evidence)+len(f.CounterEvidence))
	out = append(out, f.Summary)
	return append(append(out, f.Evidence...), f.CounterEvidence...)
}

// squeeze makes texts smaller, which are textsOf a finding with this evidence.
func (k *kind) squeeze(texts, evidence, counter []locksteward.Text) string {
	var room [256]byte
	out := binary.AppendUvarint(room[:0], count1(evidence))
	out = binary.AppendUvarint(out, count1(counter))
	for i, t := range texts {
		ref := k.closest(i, t)
		if t == k.texts[ref] {
			out = binary.AppendUvarint(out, uint64(ref)<<1|1)
			continue
		}
		out = binary.AppendUvarint(out, uint64(ref)<<1)
		var between string
		out, between = appendLine(out, k.texts[ref].EN, t.EN, "")
		out, _ = appendLine(out, k.texts[ref].ZH, t.ZH, between)
	}
	return string(out)
}

func count1(list []locksteward.Text) uint64 {
	if list == nil {
		return 0
	}
	return uint64(len(list)) + 1
}

// appendLine appends what makes line of ref, and returns what stands between what they
// have in common. That need not be written where it is what the other language has.
func appendLine(out []byte, ref, line, other string) (_ []byte, between string) {
	before, behind := common(ref, line)
	between = line[before : len(line)-behind]
	out = binary.AppendUvarint(out, uint64(before))
	out = binary.AppendUvarint(out, uint64(behind))
	if between == other {
		return append(out, 0), between
	}
	out = binary.AppendUvarint(out, uint64(len(between))+1)
	return append(out, between...), between
}

// closest is the text of the first finding that has most in common with one: that of
// the same number unless it has little.
func (k *kind) closest(i int, t locksteward.Text) (ref int) {
	most := 0
	if i < len(k.texts) {
		if t == k.texts[i] {
			return i
		}
		ref, most = i, inCommon(k.texts[i], t)
	}
	if most > 0 && most >= (len(t.EN)+len(t.ZH))/3 {
		return ref
	}
	for n, other := range k.texts {
		if bytes := inCommon(other, t); bytes > most {
			ref, most = n, bytes
		}
	}
	return ref
}

// inCommon is how many bytes two texts have in common.
func inCommon(a, b locksteward.Text) int {
	before, behind := common(a.EN, b.EN)
	beforeZH, behindZH := common(a.ZH, b.ZH)
	return before + behind + beforeZH + behindZH
}

// common is how many bytes two lines share at their beginnings and, beyond these, at
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
func (k *kind) expand(text string) (summary locksteward.Text, evidence, counter []locksteward.Text) {
	in := reader{text}
	evidence, counter = in.list(), in.list()
	summary = in.text(k)
	for i := range evidence {
		evidence[i] = in.text(k)
	}
	for i := range counter {
		counter[i] = in.text(k)
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

func (r *reader) list() []locksteward.Text {
	n := r.number()
	if n == 0 {
		return nil
	}
	return make([]locksteward.Text, n-1)
}

func (r *reader) text(k *kind) locksteward.Text {
	at := r.number()
	ref := k.texts[at>>1]
	if at&1 == 1 {
		return ref
	}
	en, between := r.line(ref.EN, "")
	zh, _ := r.line(ref.ZH, between)
	return locksteward.Text{EN: en, ZH: zh}
}

func (r *reader) line(ref, other string) (line, between string) {
	before, behind, length := r.number(), r.number(), r.number()
	if between = other; length > 0 {
		between, r.rest = r.rest[:length-1], r.rest[length-1:]
	}
	return ref[:before] + between + ref[len(ref)-behind:], between
}
