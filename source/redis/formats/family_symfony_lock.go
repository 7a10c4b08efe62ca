package formats

import (
	_ "embed" // for the script
	"math"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// symfonyWrite is the member that stands beside the token of a writer.
const symfonyWrite = "__write__"

//go:embed family_symfony_lock.lua
var symfonyLockLua string

// familySymfonyLock is Symfony's RedisStore since 5.2: a sorted set of tokens,
// base64 of 32 bytes per Key object, whose scores are the milliseconds when they
// end; a writer has a second member. The key ends with the last of them.
// Source: symfony/lock Store/RedisStore.php.
var familySymfonyLock = &family{
	name: "symfony-lock",
	stand: func(owner string) stand {
		return stand{Type: typeZSet, Name: owner, Parts: []string{owner, symfonyWrite}}
	},
	recognise: recogniseSymfony,
	release: func(s Sample, p plan) (Command, error) {
		if n := symfonyHolds(s); n != 1 && !p.how.Lift {
			return Command{}, p.refuseSome(n, "read locks")
		}
		return p.command(symfonyLockLua, nil, p.memberArgs(s)...), nil
	},
	companion: func(key string) (string, bool) { return "", key == "symfony_check_support_time" },
}

func recogniseSymfony(s Sample) (Decoded, bool) {
	if s.Type != typeZSet || s.TooLarge || len(s.Members) == 0 || int64(len(s.Members)) != s.Size {
		return Decoded{}, false
	}
	d := Decoded{
		Confidence: locksteward.ConfidenceMedium,
		Identity:   lineage(s), // a Key object keeps its token
		Waiters:    -1,         // they poll
		TokenKind:  "random base64 of a Symfony key object",
		Mode:       "read",
	}
	for _, m := range s.Members {
		if !isSymfonyTime(m.Score) || m.Name != symfonyWrite && !isSymfonyToken(m.Name) {
			return Decoded{}, false
		}
		if m.Name == symfonyWrite {
			d.Mode, d.Confidence = "write", locksteward.ConfidenceHigh
		}
	}
	if d.Mode == "write" && len(s.Members) == 1 {
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
