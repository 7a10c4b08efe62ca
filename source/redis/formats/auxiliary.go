package formats

import "strings"

// AuxiliaryRead names an auxiliary key that says more about a lock: its waiters, its
// fence.
type AuxiliaryRead struct {
	Key string
	// Type is the type that it must have: "list", "hash", "zset" or "string". A key
	// of another type counts as absent.
	Type string
}

// Auxiliary is what was read of an auxiliary key.
type Auxiliary struct {
	Size  int64  // members; bytes of a string, at most 64
	Value []byte // of a string
}

var (
	withReads        = with(func(f *Format) bool { return f.reads != nil })
	withAuxiliaryKey = with(func(f *Format) bool { return f.auxiliaryKey != nil })
	withDeadlines    = with(func(f *Format) bool { return f.deadlines != nil })
)

// AuxiliaryReads returns the keys to be read with s before [Recognise]; nil for
// almost all samples, and never more than two. What was found goes into
// Sample.Auxiliary by key; a key in another slot of a Cluster cannot be read and
// counts as absent.
func AuxiliaryReads(s Sample) (list []AuxiliaryRead) {
	for _, f := range withReads {
		if f.Type == s.Type {
			list = append(list, f.reads(s)...)
		}
	}
	return list
}

// AuxiliaryKey reports whether key belongs to a known lock library and is never a
// lock itself, though its name may speak of one: queues, signals, latches,
// counters. Such keys are not listed and never judged. lock is the key of the
// lock that it belongs to; "" for a key that belongs to no single lock or
// outlives it by design, as fences do.
//
// An auxiliary key that has no TTL and whose lock is gone is an orphan, unless
// somebody still waits: see [Deadlines].
func AuxiliaryKey(key string) (format, lock string, ok bool) {
	for _, f := range withAuxiliaryKey {
		if lock, ok := f.auxiliaryKey(key); ok {
			return f.Name, lock, true
		}
	}
	return "", "", false
}

// Deadlines returns the sorted set whose scores are the times, in ms of server
// time, until which the waiters in the auxiliary key are believed; "" if there is
// none. While one of them is in the future the key is no orphan, whatever became
// of the lock: between two holders there is none.
func Deadlines(key string) string {
	for _, f := range withDeadlines {
		if set := f.deadlines(key); set != "" {
			return set
		}
	}
	return ""
}

// cutLast splits s around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
