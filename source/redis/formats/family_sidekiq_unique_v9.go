package formats

import (
	_ "embed" // for the script
	"encoding/json"
	"strconv"
	"time"
)

//go:embed family_sidekiq_unique_v9.lua
var sidekiqUniqueV9Lua string

// familySidekiqUniqueV9 is sidekiq-unique-jobs 9 (alpha): a hash of job id and a
// JSON document, with one index beside it.
// Source: mhenrixon/sidekiq-unique-jobs lib/sidekiq_unique_jobs/lua/{lock,unlock}_v9.lua.
var familySidekiqUniqueV9 = &family{
	name:      "sidekiq-unique-v9",
	noStand:   noStandParts,
	key:       isSidekiqLock,
	recognise: func(s Sample) (Decoded, bool) { return sidekiqLock(s, timeOfSidekiqV9) },
	release:   releaseSidekiq(sidekiqUniqueV9Lua),
	companion: sidekiqCompanion,
}

// timeOfSidekiqV9 reads the time of the lock; a document without one is as good.
func timeOfSidekiqV9(value string) (time.Time, bool) {
	var document struct {
		Time any `json:"time"`
	}
	if len(value) < 2 || value[0] != '{' || json.Unmarshal([]byte(value), &document) != nil {
		return time.Time{}, false
	}
	if seconds, ok := document.Time.(float64); ok {
		if at, _, ok := epochOf(strconv.FormatFloat(seconds, 'f', 6, 64)); ok {
			return at, true
		}
	}
	return time.Time{}, true
}
