package formats

import "strings"

// pythonFamilies are the lock libraries of Python. Several write a bare UUID
// under any name: those are claimed only where the name says whose they are.
var pythonFamilies = []*family{
	familyDogpile,
	familyCeleryOnce,
	familyRedbeat,
	familyPythonRedisLock,
	familyCelerySingleton,
	familyRQScheduler,
	familyRQMaintenance,
	familyHueyLock,
	familySentryLock,
	familyAioredlock,
	familyPotteryRedlock,
	familySherlock,
	familyAiocacheRedlock,
	familyRedisPy,
	familyRedlockPy,
}

// named says that a key has name as one of its parts, in any case and with any
// separator for its dashes: what an application calls its prefix after the
// library. It looks at every key, so it makes nothing.
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

// isRandomUUID knows a version 4 UUID as Python, Ruby and others print it: in
// lower case. The zero UUID and test patterns are none.
func isRandomUUID(text string) bool {
	return isLowerUUID(text) && text[14] == '4' && strings.IndexByte("89ab", text[19]) >= 0 && isFreshUUID(text)
}
