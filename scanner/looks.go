package scanner

// looksPerPart is how many looks lie together.
const looksPerPart = 1024

// looks is a list that gives back what is behind the reader: at its end the
// largest target has all its locks in the table as well.
type looks struct {
	parts [][]look
}

func (s *looks) len() int {
	if len(s.parts) == 0 {
		return 0
	}
	return (len(s.parts)-1)*looksPerPart + len(s.parts[len(s.parts)-1])
}

func (s *looks) add(l look) {
	if s.len()%looksPerPart == 0 {
		s.parts = append(s.parts, make([]look, 0, looksPerPart))
	}
	last := &s.parts[len(s.parts)-1]
	*last = append(*last, l)
}

// at is valid until the part it is in was read.
func (s *looks) at(i int) *look { return &s.parts[i/looksPerPart][i%looksPerPart] }

// all goes through them; each part is given back once it was read if drop says
// so.
func (s *looks) all(drop bool) func(yield func(*look) bool) {
	return func(yield func(*look) bool) {
		for i := range s.parts {
			for k := range s.parts[i] {
				if !yield(&s.parts[i][k]) {
					return
				}
			}
			if drop {
				s.parts[i] = nil
			}
		}
	}
}
