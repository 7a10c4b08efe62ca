package formats

import (
	_ "embed" // for the script
	"strings"

	"github.com/locksteward/locksteward"
)

//go:embed family_asynq_unique.lua
var asynqUniqueLua string

// familyAsynqUnique is the lock of asynq's unique tasks: the id of the task under
// asynq:{<queue>}:unique:<type>:<md5 of the payload, if there is one>.
// Source: hibiken/asynq internal/base/base.go (UniqueKey), internal/rdb/rdb.go (enqueueUniqueCmd, doneUniqueCmd).
var familyAsynqUnique = &family{
	name:    "asynq-unique",
	typ:     typeString,
	noStand: noStandTask,
	key: func(key string) bool {
		_, rest, ok := asynqQueue(key)
		task, ok2 := strings.CutPrefix(rest, "unique:")
		name, sum, cut := cutLast(task, ":")
		return ok && ok2 && cut && name != "" && (sum == "" || isHex32(sum))
	},
	recognise: func(s Sample) (Decoded, bool) {
		text := string(s.Value)
		if !whole(s) || text == "" || !isPrintableText(text) {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   locksteward.IdentityStrong,
			Count:      1,
			Waiters:    -1, // nobody waits: a second task is refused
			TokenKind:  "the id of an asynq task",
		}
		if !isFreshUUID(text) { // given by the caller, so it may come again
			d.Identity = lineage(s)
			d.TokenKind = "the id of an asynq task, as the caller gave it"
		}
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) {
		prefix, _, _ := asynqQueue(s.Key)
		return p.command(asynqUniqueLua, nil, s.Value, prefix+"t:"), nil
	},
}
