package formats

import (
	"slices"
	"strings"
)

// MayBeLock reports by the name alone that a key must be read though no class
// matches it and no word of it speaks of a lock: locks of some library, or its
// auxiliary keys, have such names. What the key is follows from its value. Every
// scanned key is checked here: it takes a few nanoseconds and does not allocate.
func MayBeLock(key string) bool {
	if len(key) < 3 {
		return false
	}
	first, last := key[0], key[len(key)-1]
	for i := range names.first[first] {
		if names.first[first][i].matches(key) {
			return true
		}
	}
	for i := range names.last[last] {
		if names.last[last][i].matches(key) {
			return true
		}
	}
	if len(key) <= digestLength {
		return false
	}
	for _, word := range names.digestAfter {
		if hasDigestAfter(key, word) {
			return true
		}
	}
	return false
}

// digestLength is that of a SHA-1 in hex.
const digestLength = 40

// hasDigestAfter reports whether key ends in word and as many bytes as a SHA-1 in hex
// has, or four more.
func hasDigestAfter(key, word string) bool {
	for _, tail := range [...]int{digestLength, digestLength + 4} {
		if i := len(key) - tail; i >= len(word) && key[i-1] == word[len(word)-1] && key[i-len(word):i] == word {
			return true
		}
	}
	return false
}

// namePattern is how the names of a library's locks begin, how they end, and what
// is in between; prefix or suffix is not empty. Names with lock, lck, mutex,
// semaphore or lease in them need none: they are found by that (class.Match).
type namePattern struct{ prefix, suffix, infix string }

func (n *namePattern) matches(key string) bool {
	return len(key) > len(n.prefix)+len(n.suffix) && strings.HasPrefix(key, n.prefix) && strings.HasSuffix(key, n.suffix) &&
		(n.infix == "" || strings.Contains(key[len(n.prefix):], n.infix))
}

// nameIndex has all formats' names, by the first byte of their prefix, or else by
// the last byte of their suffix.
type nameIndex struct {
	first, last [256][]namePattern
	digestAfter []string
}

var names = func() (index nameIndex) {
	for _, f := range table {
		for _, n := range f.names {
			var list *[]namePattern
			if n.prefix != "" {
				list = &index.first[n.prefix[0]]
			} else {
				list = &index.last[n.suffix[len(n.suffix)-1]]
			}
			if !slices.Contains(*list, n) { // several formats may share one
				*list = append(*list, n)
			}
		}
		if f.digestAfter != "" {
			index.digestAfter = append(index.digestAfter, f.digestAfter)
		}
	}
	return index
}()
