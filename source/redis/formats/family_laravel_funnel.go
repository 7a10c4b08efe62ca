package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyLaravelFunnel is one slot of Laravel's Redis::funnel: 20 random letters
// and digits under <name><slot>, always with a TTL. A number behind a separator
// is more likely somebody's id than a slot.
// Source: laravel/framework src/Illuminate/Redis/Limiters/ConcurrencyLimiter.php.
var familyLaravelFunnel = func() *family {
	f := stringFamily("laravel-funnel", isFunnelSlot, stringLock{
		kind: "20 random letters and digits of a slot, as Laravel's funnel writes them",
		value: func(text string) bool {
			v := varietyOf(text)
			return len(text) == 20 && every(text, isAlnum) && v.lower && v.upper && v.digit && isRandomAlnum(text)
		},
		origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
	})
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		if s.TTL == locksteward.NoExpiry {
			return Decoded{}, false
		}
		return decode(s)
	}
	return f
}()

// isFunnelSlot knows <name><slot>, slots from 1 on.
func isFunnelSlot(key string) bool {
	name := strings.TrimRight(key, "0123456789")
	slot := key[len(name):]
	if name == "" || slot == "" || slot[0] == '0' || len(slot) > 4 {
		return false
	}
	last := name[len(name)-1]
	return isLetter(last) || last == '}'
}
