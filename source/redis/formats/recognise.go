package formats

import (
	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// MaxNamedString is the longest string in bytes that a whole word of its name
// makes a lock; a longer one under such a name is more likely data.
const MaxNamedString = 256

// tableOf has the formats that may have locks of a type, in the order of the table;
// those that may have locks of any other type are under "".
var tableOf = func() map[string][]*Format {
	index := map[string][]*Format{}
	for _, typ := range []string{"", typeString, typeHash, typeZSet, typeSet, typeList} {
		index[typ] = with(func(f *Format) bool { return f.Type == "" || f.Type == typ })
	}
	return index
}()

// Recognise decodes s with the first format that knows it. It never fails:
// what fits no format is "unknown" and never releasable.
func Recognise(s Sample) Decoded {
	if whole(s) {
		s.text, s.unwrapped = unwrap(string(s.Value)), true // once for all formats
	}
	list, known := tableOf[s.Type]
	if !known {
		list = tableOf[""]
	}
	for _, f := range list {
		if f.matches != nil && !f.matches(s.Key) || f.needsTTL && s.TTL == locksteward.NoExpiry {
			continue
		}
		d, ok := f.decode(s)
		if !ok || f.bare && len(s.plain()) != len(s.Value) {
			continue
		}
		d.Format = f.Name
		if d.RenewEvery == 0 {
			d.RenewEvery = f.RenewEvery
		}
		return d
	}
	return Decoded{} // not reached: the last format accepts everything
}

// Decide reports whether the key is a lock or a candidate, or, with false,
// neither. A configured class and a structure that nothing else has make a
// lock whatever its name; a whole word of the name does for a short string and
// for a shape known of a lock library. A placeholder is a lock here: a caller that knows
// the release that wrote it ([PlaceholderRequest]) decides otherwise.
func Decide(m class.Match, s Sample, d Decoded) (locksteward.Kind, bool) {
	if _, _, auxiliary := AuxiliaryKey(s.Key); auxiliary || isWorkCounter(s) {
		return "", false
	}
	switch {
	case m.Configured, d.Confidence == locksteward.ConfidenceHigh, IsPlaceholder(s):
		return locksteward.KindLock, true
	case m.Word && s.Type == typeString && s.Size <= MaxNamedString,
		m.Word && s.Type != typeString && d.Confidence == locksteward.ConfidenceMedium:
		return locksteward.KindLock, true
	case m.Word, m.Candidate:
		return locksteward.KindCandidate, true
	default:
		return "", false
	}
}

// Types as TYPE returns them.
const (
	typeString = "string"
	typeHash   = "hash"
	typeZSet   = "zset"
	typeSet    = "set"
	typeList   = "list"
	typeStream = "stream"
)

// Modes of locks that have both, as Decoded.Mode.
const (
	modeRead  = "read"
	modeWrite = "write"
)

// lineage is the identity of a lock whose bytes may be the same in the next
// hold: its expiry tells them apart, without expiry nothing does.
func lineage(s Sample) locksteward.Identity {
	if s.TTL == locksteward.NoExpiry {
		return locksteward.IdentityNone
	}
	return locksteward.IdentityLineage
}

// plain returns the value of a string without the serialisation that a client
// library put around it.
func (s *Sample) plain() string {
	if s.unwrapped {
		return s.text
	}
	return unwrap(string(s.Value))
}

// whole reports whether the sample has all bytes of a string.
func whole(s Sample) bool {
	return s.Type == typeString && !s.TooLarge && int64(len(s.Value)) == s.Size
}
