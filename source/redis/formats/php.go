package formats

import (
	_ "embed" // for the script
	"math"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

//go:embed symfony_lock.lua
var symfonyLockLua string

// phpFormats are the lock libraries of PHP.
var phpFormats = []*Format{
	// Laravel's scheduler up to 10: the constant true under
	// …framework/schedule-<sha1>[HHmm], a day or an hour.
	// Source: laravel/framework src/Illuminate/Console/Scheduling/Cache{Event,Scheduling}Mutex.php.
	{
		Name:        "laravel-schedule-mutex-legacy",
		Type:        typeString,
		matches:     isLaravelScheduleKey,
		digestAfter: "framework/schedule-",
		decode: stringLock{
			kind:       "a one-digit number",
			value:      func(text string) bool { return text == "1" },
			origin:     originShared,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		Never: "its value is the same for every holder, so nobody can tell this run from the next",
	},
	// Laravel's cache lock, of unique jobs, WithoutOverlapping, the scheduler (11 and
	// later) and isolated commands too: 16 random letters and digits per Lock object,
	// plain or as a serialiser of phpredis stores them.
	// Source: laravel/framework src/Illuminate/Cache/{Lock,RedisLock,PhpRedisLock}.php.
	{
		Name: "laravel-lock",
		Type: typeString,
		matches: func(key string) bool {
			for _, mark := range laravelMarks {
				if strings.Contains(key, mark) {
					return true
				}
			}
			return false
		},
		names: []namePattern{
			{prefix: "laravel", infix: "laravel_unique_job:"},
			{prefix: "laravel", infix: "laravel-queue-overlap:"},
			{prefix: "laravel", infix: "framework/command-"},
		},
		decode: stringLock{
			kind: "random letters of a Laravel lock object",
			value: func(text string) bool {
				text = fromPHP(text)
				v := varietyOf(text) // a cached word must not pass for a lock
				return len(text) == 16 && every(text, isAlnum) && v.lower && v.upper && v.distinct >= 8
			},
			origin:     originProcess,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		release: deleteString,
	},
	// One slot of Laravel's Redis::funnel: 20 random letters and digits under
	// <name><slot>, always with a TTL. A number behind a separator is more likely
	// somebody's id than a slot.
	// Source: laravel/framework src/Illuminate/Redis/Limiters/ConcurrencyLimiter.php.
	{
		Name:     "laravel-funnel",
		Type:     typeString,
		matches:  isFunnelSlot,
		needsTTL: true,
		decode: stringLock{
			kind: "20 random letters and digits of a slot, as Laravel's funnel writes them",
			value: func(text string) bool {
				v := varietyOf(text)
				return len(text) == 20 && every(text, isAlnum) && v.lower && v.upper && v.digit && isRandomAlnum(text)
			},
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// Symfony's RedisStore since 5.2: a sorted set of tokens, base64 of 32 bytes per Key
	// object, whose scores are the milliseconds when they end; a writer has a second
	// member. The key ends with the last of them.
	// Source: symfony/lock Store/RedisStore.php.
	{
		Name:   "symfony-lock",
		decode: decodeSymfony,
		release: func(s Sample, p plan) (Command, error) {
			if n := symfonyHolds(s); n != 1 && !p.options.Lift {
				return Command{}, p.refuseSeveral(n, "read locks")
			}
			return p.command(symfonyLockLua, nil, p.memberArgs(s)...), nil
		},
		placeholder: func(owner string) placeholder {
			return placeholder{Type: typeZSet, Name: owner, Parts: []string{owner, symfonyWrite}}
		},
		auxiliaryKey: func(key string) (string, bool) { return "", key == "symfony_check_support_time" },
	},
}

// laravelMarks are what the names of Laravel's locks contain: its cache
// prefixes, and the names that the framework itself locks.
var laravelMarks = [...]string{
	"-cache-", "_cache_", "_cache:", "laravel_unique_job:", "laravel-queue-overlap:",
	"framework/schedule-", "framework/command-", "illuminate:cache:flexible:lock:",
}

// fromPHP removes what phpredis's serialisers put around a string.
func fromPHP(value string) string {
	// igbinary: version 2, then a short string with its length.
	if rest, ok := strings.CutPrefix(value, "\x00\x00\x00\x02\x11"); ok && len(rest) > 0 && int(rest[0]) == len(rest)-1 {
		return rest[1:]
	}
	return unwrap(value)
}

// isLaravelScheduleKey matches …framework/schedule-<sha1>, with the hour and
// minute behind it for onOneServer.
func isLaravelScheduleKey(key string) bool {
	_, digest, ok := cutLast(key, "framework/schedule-")
	if !ok || len(digest) != 40 && len(digest) != 44 || !isLowerHex(digest[:40]) {
		return false
	}
	return strings.Trim(digest[40:], "0123456789") == ""
}

// isFunnelSlot matches <name><slot>, slots from 1 on.
func isFunnelSlot(key string) bool {
	name := strings.TrimRight(key, "0123456789")
	slot := key[len(name):]
	if name == "" || slot == "" || slot[0] == '0' || len(slot) > 4 {
		return false
	}
	last := name[len(name)-1]
	return isLetter(last) || last == '}'
}

// symfonyWrite is the member that a writer has besides its token.
const symfonyWrite = "__write__"

func decodeSymfony(s Sample) (Decoded, bool) {
	if s.Type != typeZSet || s.TooLarge || len(s.Members) == 0 || int64(len(s.Members)) != s.Size {
		return Decoded{}, false
	}
	d := Decoded{
		Confidence: locksteward.ConfidenceMedium,
		Identity:   lineage(s), // a Key object keeps its token
		Waiters:    -1,         // they poll
		TokenKind:  "random base64 of a Symfony key object",
		Mode:       modeRead,
	}
	for _, m := range s.Members {
		if !isSymfonyTime(m.Score) || m.Name != symfonyWrite && !isSymfonyToken(m.Name) {
			return Decoded{}, false
		}
		if m.Name == symfonyWrite {
			d.Mode, d.Confidence = modeWrite, locksteward.ConfidenceHigh
		}
	}
	if d.Mode == modeWrite && len(s.Members) == 1 {
		return Decoded{}, false // a writer without a token is nobody's layout
	}
	d.Count = int64(max(1, symfonyHolds(s)))
	return d, true
}

// symfonyHolds counts the tokens that had not ended when the set was read: the
// library leaves those that have until it next writes.
func symfonyHolds(s Sample) int {
	last := math.Inf(-1)
	for _, m := range s.Members {
		last = max(last, m.Score)
	}
	now := math.Inf(-1)
	if s.TTL > 0 {
		now = last - float64(s.TTL/time.Millisecond) // the key ends with its last token
	}
	holds := 0
	for _, m := range s.Members {
		if m.Name != symfonyWrite && m.Score >= now {
			holds++
		}
	}
	return holds
}

func isSymfonyToken(text string) bool {
	return len(text) == 44 && strings.HasSuffix(text, "=") && isRandomBase64(text)
}

// isSymfonyTime wants a plausible whole number of milliseconds since 1970.
func isSymfonyTime(score float64) bool {
	return score == math.Trunc(score) && score > float64(firstTime.UnixMilli()) && score < float64(lastTime.UnixMilli())
}
