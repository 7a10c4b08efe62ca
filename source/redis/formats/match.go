package formats

import "strings"

// named returns a matcher of keys that have name as one of their parts, in any case
// and with any separator for its dashes: applications call their prefix after the
// library. It runs on every key, so it does not allocate.
func named(name string) func(key string) bool {
	return func(key string) bool {
		for i := 0; i+len(name) <= len(key); i++ {
			end := i + len(name)
			if (i == 0 || isKeySeparator(key[i-1])) && (end == len(key) || isKeySeparator(key[end])) && spells(key[i:end], name) {
				return true
			}
		}
		return false
	}
}

// spells compares a part of a key with a name of the same length in lower case.
func spells(part, name string) bool {
	for i := range len(name) {
		c := part[i]
		if isUpper(c) {
			c += 'a' - 'A'
		}
		if c != name[i] && (name[i] != '-' || !isKeySeparator(c)) {
			return false
		}
	}
	return true
}

func isKeySeparator(c byte) bool { return strings.IndexByte(":._-/{}|", c) >= 0 }

// prefixed returns a matcher of texts that begin with prefix and go on.
func prefixed(prefix string) func(string) bool {
	return func(s string) bool { return len(s) > len(prefix) && strings.HasPrefix(s, prefix) }
}

// hasPrefixed reports whether s begins with prefix and ok accepts the rest.
func hasPrefixed(s, prefix string, ok func(string) bool) bool {
	rest, found := strings.CutPrefix(s, prefix)
	return found && ok(rest)
}

// containsFolded reports whether word, which is lower case, is in s in any case.
func containsFolded(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// matchesAnyBeginning reports whether a glob pattern begins with any bytes.
func matchesAnyBeginning(glob string) bool {
	return strings.HasPrefix(glob, "*") || strings.HasPrefix(glob, "?")
}
