package formats

import (
	_ "embed" // for the scripts
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

var (
	//go:embed go_redislock.lua
	goRedisLockLua string
	//go:embed go_redislock_rw.lua
	goRedisLockRWLua string
)

// goRedisLockFormats are the locks of jefferyjob/go-redislock.
var goRedisLockFormats = []*Format{
	// go-redislock's plain lock, re-entrant or of several names: a token per lock
	// object under {name}, and a counter in an auxiliary key. Before version 1.1.4 the
	// names had no braces.
	// Source: jefferyjob/go-redislock lua/{reentrantLock,reentrantUnLock,multiLock}.lua.
	{
		Name:  "go-redislock-reentrant",
		Type:  typeString,
		names: bracedNames,
		bare:  true,
		decode: func(s Sample) (Decoded, bool) {
			d, ok := goRedisLockString.decode(s)
			if count, counted := countOf(string(s.Auxiliary[goRedisLockCounter(s)].Value)); counted {
				d.Count = count
			}
			return d, ok
		},
		release: releaseGoRedisLock,
		reads: func(s Sample) []AuxiliaryRead {
			if !isBraced(s.Key) || !whole(s) || !isGoRedisLockToken(string(s.Value)) {
				return nil
			}
			return []AuxiliaryRead{{Key: goRedisLockCounter(s), Type: typeString}}
		},
		// The counter ends when the lock would have, so it is nobody's orphan.
		auxiliaryKey: func(key string) (string, bool) {
			lock, token, ok := cutLast(key, ":count:")
			return "", ok && lock != "" && strings.HasPrefix(token, "lock_token:") && isGoRedisLockToken(token)
		},
		Grants: goRedisLockGrants,
	},
	// go-redislock's read/write lock: a hash with the mode, the writer and its count,
	// and a count for each reader. The writer may read too.
	// Source: jefferyjob/go-redislock lua/{readLock,readUnLock,writeLock,writeUnLock}.lua.
	{
		Name: "go-redislock-rw",
		decode: func(s Sample) (Decoded, bool) {
			rw, ok := goRedisLockRWOf(s)
			if !ok {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   lineage(s),
				Mode:       rw.mode,
				Count:      rw.count,
				Waiters:    -1, // they poll
				TokenKind:  "a text that the caller gave",
			}
			for holder := range rw.holders {
				if isGoRedisLockToken(holder) {
					d.TokenKind = goRedisLockKind
				}
			}
			return d, true
		},
		release: func(s Sample, p plan) (Command, error) {
			rw, _ := goRedisLockRWOf(s) // the plan has recognised it
			if n := len(rw.holders); n > 1 {
				return Command{}, p.refuseSeveral(n, "read locks")
			}
			return p.command(goRedisLockRWLua, nil, fieldArgs(s)...), nil
		},
		placeholder: func(owner string) placeholder {
			return placeholder{Type: typeHash, Name: "writer", Parts: []string{"writer", owner, "mode", modeWrite, "wcount", "1"}}
		},
	},
	// go-redislock's fair lock: the request id that the caller gave under {name}, and
	// the waiters in a sorted set. Such names and values are anybody's, so without its
	// queue it is no more than a guess. Any text under a name in braces matches: it is
	// the last of those that know the name.
	// Source: jefferyjob/go-redislock lua/{fairLock,fairUnLock}.lua, lock_fair.go.
	{
		Name:     "go-redislock-fair",
		Type:     typeString,
		matches:  isBraced,
		names:    bracedNames,
		needsTTL: true,
		decode: func(s Sample) (Decoded, bool) {
			if !whole(s) || !isRequestID(string(s.Value)) {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceLow,
				Identity:   lineage(s),
				Count:      1,
				Waiters:    -1,
				TokenKind:  "a request id that the caller gave",
			}
			if queue, ok := s.Auxiliary[goRedisLockQueue(s)]; ok {
				d.Confidence = locksteward.ConfidenceMedium
				d.Waiters = int(max(0, queue.Size-1)) // the holder stays in it
			}
			return d, true
		},
		release: releaseGoRedisLock,
		reads: func(s Sample) []AuxiliaryRead {
			if !isBraced(s.Key) || !whole(s) || !isRequestID(string(s.Value)) {
				return nil
			}
			return []AuxiliaryRead{{Key: goRedisLockQueue(s), Type: typeZSet}}
		},
		Grants: goRedisLockGrants,
	},
}

// The string locks of go-redislock have in common the name in braces, so that their
// auxiliary keys are in the lock's slot (jefferyjob/go-redislock
// lua/{reentrant,fair,multi}Lock.lua).
var bracedNames = []namePattern{{prefix: "{", suffix: "}"}}

// goRedisLockKind is the token that the library generates.
const goRedisLockKind = "a UUID, as go-redislock writes it"

var goRedisLockString = stringLock{
	kind: goRedisLockKind, value: isGoRedisLockToken,
	origin: originProcess, confidence: locksteward.ConfidenceHigh,
}

// releaseGoRedisLock removes the auxiliary keys too. The script builds their names
// itself: one of them contains the token.
func releaseGoRedisLock(s Sample, p plan) (Command, error) {
	return p.command(goRedisLockLua, nil, s.Value), nil
}

func goRedisLockGrants(glob string) (keys, channels []string) {
	return []string{glob + ":count:*", glob + ":queue"}, nil
}

func isGoRedisLockToken(text string) bool { return hasPrefixed(text, "lock_token:", isFreshUUID) }

// isBraced matches {name}.
func isBraced(key string) bool {
	return len(key) > 2 && key[0] == '{' && strings.IndexAny(key[1:], "{}") == len(key)-2
}

// goRedisLockCounter is the key that counts how often the holder has acquired the lock.
func goRedisLockCounter(s Sample) string { return s.Key + ":count:" + string(s.Value) }

// goRedisLockQueue is the key of a fair lock's queue, its holder at the head.
func goRedisLockQueue(s Sample) string { return s.Key + ":queue" }

// countOf parses a number of holds, which is never 0 in Redis.
func countOf(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return n, err == nil && n > 0 && isDigits(text)
}

// maxRequestID bounds what is taken for a request id.
const maxRequestID = 128

// isRequestID matches what is likely given for one: a UUID, with a name before it
// or not, and a name with a number.
func isRequestID(text string) bool {
	if len(text) > maxRequestID || !isPrintableText(text) || strings.ContainsAny(text, ` {}[]"@`) || isGoRedisLockToken(text) {
		return false
	}
	if i := len(text) - uuidLength; i >= 0 && isFreshUUID(text[i:]) {
		return i == 0 || !isAlnum(text[i-1])
	}
	_, process := hostAndPID(text)
	return !process && !isAddress(text) && isName(text) && strings.ContainsAny(text, "0123456789") && strings.ContainsAny(text, "-_:#")
}

// goRedisLockRWState is the content of such a hash.
type goRedisLockRWState struct {
	mode    string
	count   int64 // of the writer, or of all readers
	holders map[string]bool
}

// goRedisLockRWOf parses a hash whose counts agree with each other.
func goRedisLockRWOf(s Sample) (goRedisLockRWState, bool) {
	var none goRedisLockRWState
	if s.Type != typeHash || s.TooLarge || int64(len(s.Fields)) != s.Size {
		return none, false
	}
	rw := goRedisLockRWState{mode: s.Fields["mode"], holders: map[string]bool{}}
	var reads, readers int64 // as counted, as said
	for field, value := range s.Fields {
		reader, isReader := strings.CutPrefix(field, "r:")
		count, counted := countOf(value)
		switch {
		case field == "mode":
		case field == "writer" && value != "":
			rw.holders[value] = true
		case field == "wcount" && counted:
			rw.count = count
		case field == "rcount" && counted:
			readers = count
		case isReader && reader != "" && counted:
			rw.holders[reader] = true
			reads += count
		default:
			return none, false
		}
	}
	if reads != readers {
		return none, false
	}
	_, writer := s.Fields["writer"]
	switch rw.mode {
	case modeRead:
		rw.count = reads
		return rw, reads > 0 && !writer && s.Fields["wcount"] == ""
	case modeWrite:
		return rw, writer && rw.count > 0
	default:
		return none, false
	}
}
