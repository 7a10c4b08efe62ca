package formats

import (
	_ "embed" // for the script
	"strings"

	"github.com/locksteward/locksteward"
)

//go:embed family_bullmq_dedup.lua
var bullMQDedupLua string

// familyBullMQDedup is BullMQ's deduplication, Bull's debouncing too: the id of
// the job that keeps others of the same kind away, under <prefix>:<queue>:de:<id>.
// By design it has no TTL unless one is asked for, and goes when its job is over.
// A prefix of one's own is not claimed: messages:home:de:title is German.
// Source: taskforcesh/bullmq src/commands/includes/{deduplicateJob,removeDeduplicationKeyIfNeededOnFinalization}.lua.
var familyBullMQDedup = &family{
	name:    "bullmq-dedup",
	typ:     typeString,
	noStand: noStandTask,
	key: func(key string) bool {
		_, rest, ok := bullQueue(key)
		return ok && prefixed("de:")(rest)
	},
	recognise: func(s Sample) (Decoded, bool) {
		text := string(s.Value)
		if !whole(s) || text == "" || !isPrintableText(text) || strings.ContainsAny(text, " {}[]\"") {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   locksteward.IdentityStrong,
			Count:      1,
			Waiters:    -1, // nobody waits: a second job is dropped
			TokenKind:  "the id of a BullMQ job",
		}
		if !isFreshUUID(text) { // counted, and from 1 again in an emptied queue, or given
			d.Identity = lineage(s)
		}
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) {
		queue, _, _ := bullQueue(s.Key)
		return p.command(bullMQDedupLua, nil, s.Value, queue), nil
	},
}
