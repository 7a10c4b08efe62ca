package formats

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// familyRedisPy is redis-py's Lock (and django-redis's cache.lock): the text of
// uuid1().hex under any name.
// Source: redis/redis-py redis/lock.py.
var familyRedisPy = timeUUIDFamily("redis-py", nil, 0)

// timeUUIDFamily is a library whose lock is redis-py's, under names of its own.
func timeUUIDFamily(name string, key func(string) bool, renewEvery time.Duration) *family {
	f := stringFamily(name, key, stringLock{
		kind:       "a UUID with a time, as redis-py writes it",
		value:      func(text string) bool { _, ok := timeOfUUIDHex(text); return ok },
		origin:     originAcquisition,
		confidence: locksteward.ConfidenceHigh,
		renewEvery: renewEvery,
		holder:     func(text string) locksteward.Holder { return locksteward.Holder{Instance: hostOfUUIDHex(text)} },
	})
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		if ok {
			// To the second: the whole time would give most of the token away. The
			// token is drawn before the library begins to wait.
			at, _ := timeOfUUIDHex(s.plain())
			d.Acquired, d.Asked = at.Truncate(time.Second), true
		}
		return d, ok
	}
	return f
}

// uuidEpoch is the 100 ns steps from 1582-10-15, where the time in a version 1
// UUID begins, to 1970 (RFC 9562, section 5.1).
const uuidEpoch = 0x01b21dd213814000

// timeOfUUIDHex reads the time in the 32 hex digits of a version 1 UUID, if it
// is plausible: of random hex digits, one text in about 2,500 passes.
func timeOfUUIDHex(text string) (time.Time, bool) {
	if len(text) != 32 || !isLowerHex(text) || text[12] != '1' || strings.IndexByte("89ab", text[16]) < 0 {
		return time.Time{}, false
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		return time.Time{}, false
	}
	low := int64(raw[0])<<24 | int64(raw[1])<<16 | int64(raw[2])<<8 | int64(raw[3])
	mid := int64(raw[4])<<8 | int64(raw[5])
	high := int64(raw[6]&0x0f)<<8 | int64(raw[7])
	at := time.UnixMicro(((high<<48 | mid<<32 | low) - uuidEpoch) / 10).UTC()
	return at, at.After(firstTime) && at.Before(lastTime)
}

// hostOfUUIDHex is the network address in a version 1 UUID: the same for all
// processes of a host. A drawn one (multicast bit) says nothing.
func hostOfUUIDHex(text string) string {
	node := text[20:]
	if first, err := hex.DecodeString(node[:2]); err != nil || first[0]&1 == 1 {
		return ""
	}
	parts := make([]string, 0, 6)
	for i := 0; i < len(node); i += 2 {
		parts = append(parts, node[i:i+2])
	}
	return "mac " + strings.Join(parts, ":")
}
