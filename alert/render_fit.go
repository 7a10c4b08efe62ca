package alert

// Every service bounds a message. One that is too long is sent with less of each text, then
// with fewer findings, and at last as its title; what is left out is counted, by severity.

// textLimits are how long texts may be, in characters, from the first try to the last.
var textLimits = []int{600, 200, 60}

// maxLead is how many lines a lead has at most.
const maxLead = 24

// cut returns the message with its first n parts and no text longer than the limit.
func (s message) cut(n, limit int) message {
	out := s
	out.title = cut(s.title, max(100, min(limit, 140)))
	out.lead = cutLines(s.lead[:min(len(s.lead), maxLead)], limit)
	out.parts = make([]part, 0, n)
	for _, p := range s.parts[:n] {
		p.head, p.lines = cut(p.head, limit), cutLines(p.lines, limit)
		out.parts = append(out.parts, p)
	}
	out.more = s.more.and(s.parts[n:])
	if s.text != "" {
		// A template's text replaces all parts: only its own length matters.
		out.text = cut(s.text, limit*20)
		out.more = s.more
	}
	return out
}

func cutLines(lines []line, limit int) []line {
	out := make([]line, 0, len(lines))
	for _, l := range lines {
		out = append(out, line{l.label, cut(l.text, limit)})
	}
	return out
}

// bare is a title, and how much is left out.
func (s message) bare() message {
	s.lead, s.text = nil, "" // the text of a template is about the parts
	return s.cut(0, textLimits[len(textLimits)-1])
}

// fit is the largest form of a message that a service takes. take returns what is sent
// and whether it is within the bounds; it takes a title alone.
func fit[T any](s message, take func(message) (T, bool)) T {
	for i, limit := range textLimits {
		if out, ok := take(s.cut(len(s.parts), limit)); ok {
			return out
		}
		if i == 0 {
			continue // shorter texts before fewer findings
		}
		// The most findings that are taken: one more is too many.
		var best T
		few, many := 0, len(s.parts)
		for few+1 < many {
			n := (few + many) / 2
			if out, ok := take(s.cut(n, limit)); ok {
				few, best = n, out
			} else {
				many = n
			}
		}
		if few > 0 {
			return best
		}
	}
	last := s.bare()
	if out, ok := take(last); ok {
		return out
	}
	last.links = nil
	out, _ := take(last)
	return out
}
