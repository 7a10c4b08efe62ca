package formats

import (
	"slices"

	"github.com/locksteward/locksteward"
)

// Digest returns the digest of what the sample holds; "" if it was not read in
// full or is of a type that is not read.
//
// The scores of a sorted set count only where the key has no expiry: lock
// libraries keep the time of the last renewal there, and a renewal does not make
// another hold. Where there is an expiry it moves with them and is compared too.
// The same goes for the fields of a hash that a renewal changes.
func (s Sample) Digest(k locksteward.DigestKey) string {
	switch {
	case s.TooLarge:
		return ""
	case s.Type == typeString:
		return k.Value(s.Value)
	case s.Type == typeHash:
		return k.Fields(stableFields(s))
	case s.Type != typeZSet && s.Type != typeSet && s.Type != typeList:
		return ""
	}
	names := make([]string, len(s.Members))
	var scores []float64
	for i, m := range s.Members {
		names[i] = m.Name
		if s.Type == typeZSet && s.TTL == locksteward.NoExpiry {
			scores = append(scores, m.Score)
		}
	}
	if s.Type == typeZSet && scores == nil {
		slices.Sort(names) // a renewal moves a member in the set's own order
	}
	return k.Members(names, scores)
}

var withStableFields = with(func(f *Format) bool { return f.stableFields != nil })

// stableFields returns the fields of a hash that a renewal does not change.
func stableFields(s Sample) map[string]string {
	fields := s.Fields
	if s.TTL == locksteward.NoExpiry {
		return fields
	}
	for _, f := range withStableFields {
		if stable := f.stableFields(s); stable != nil {
			return stable
		}
	}
	return fields
}
