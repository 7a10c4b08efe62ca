package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyHueyLock is Huey's lock_task: "1" (a pickle of it in later versions)
// under <huey>.lock.<name>, as a field of the hash that has the results, or as a
// key of its own with RedisExpireHuey.
// Source: coleifer/huey huey/{api,storage}.py.
var familyHueyLock = &family{
	name: "huey-lock",
	key: func(key string) bool {
		return strings.HasPrefix(key, "huey.results.") || strings.HasPrefix(key, "huey.r.") && strings.Contains(key, ".lock.")
	},
	recognise: recogniseHuey,
	refuse:    "its value is the same for every holder, so nobody can tell this hold from the next",
}

func recogniseHuey(s Sample) (Decoded, bool) {
	d := Decoded{
		Confidence: locksteward.ConfidenceHigh, Identity: lineage(s), Count: 1, Waiters: -1,
		SharedToken: true, TokenKind: "a one-digit number",
	}
	if whole(s) {
		return d, strings.HasPrefix(s.Key, "huey.r.") && isHueyHeld(string(s.Value))
	}
	if s.Type != typeHash || s.TooLarge || !strings.HasPrefix(s.Key, "huey.results.") {
		return Decoded{}, false
	}
	held := int64(0)
	for field, value := range s.Fields {
		if i := strings.Index(field, ".lock."); i > 0 && isHueyHeld(value) {
			held++
		}
	}
	d.Count = held // locks in this one hash
	return d, held > 0
}

// isHueyHeld knows "1", bare or as pickle writes it in any of its protocols.
func isHueyHeld(value string) bool {
	switch value {
	case "1", "V1\np0\n.", "X\x01\x00\x00\x001q\x00.", "\x80\x02X\x01\x00\x00\x001q\x00.", "\x80\x03X\x01\x00\x00\x001q\x00.",
		"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x011\x94.", "\x80\x05\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x011\x94.":
		return true
	}
	return false
}
