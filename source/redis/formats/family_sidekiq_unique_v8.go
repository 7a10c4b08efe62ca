package formats

import (
	_ "embed" // for the script
	"time"
)

//go:embed family_sidekiq_unique_v8.lua
var sidekiqUniqueV8Lua string

// familySidekiqUniqueV8 is sidekiq-unique-jobs 7 and 8: a hash of job id and
// time of the lock in seconds, with lists, a string and two indexes beside it.
// Source: mhenrixon/sidekiq-unique-jobs lib/sidekiq_unique_jobs/{key.rb,lua/{lock,unlock}.lua}.
var familySidekiqUniqueV8 = &family{
	name:    "sidekiq-unique-v8",
	noStand: noStandParts,
	key:     isSidekiqLock,
	recognise: func(s Sample) (Decoded, bool) {
		return sidekiqLock(s, func(value string) (time.Time, bool) {
			at, _, ok := epochOf(value)
			return at, ok
		})
	},
	release:   releaseSidekiq(sidekiqUniqueV8Lua),
	companion: sidekiqCompanion,
}
