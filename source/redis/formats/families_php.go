package formats

import "strings"

// phpFamilies are the lock libraries of PHP.
var phpFamilies = []*family{
	familyLaravelScheduleMutexLegacy,
	familyLaravelLock,
	familyLaravelFunnel,
	familySymfonyLock,
}

// fromPHP takes a string out of what phpredis's serialisers put around it.
func fromPHP(value string) string {
	// igbinary: version 2, then a short string with its length.
	if rest, ok := strings.CutPrefix(value, "\x00\x00\x00\x02\x11"); ok && len(rest) > 0 && int(rest[0]) == len(rest)-1 {
		return rest[1:]
	}
	return unwrap(value)
}
