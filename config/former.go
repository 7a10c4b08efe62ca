package config

import (
	"slices"
	"strings"
)

// formerKeys are the keys that an earlier configuration had, and what to write instead.
// Nothing else knows them.
var formerKeys = map[string]string{
	"alert.first_survey":         "write alert.first_sweep instead",
	"alert.queue_size":           "the store bounds what waits: leave it out",
	"metrics.max_series":         "set sample_limit in Prometheus instead",
	"release.freeze":             "write release.pause_windows instead",
	"release.kill_switch":        "write release.paused instead",
	"store.on_damage":            "a damaged store is refused: leave it out",
	"targets[].max_server_share": "write pace: {idle: 10%, busy: 1%} instead",
	"targets[].redis":            "write targets[].url instead",
}

// formerKey says what to write instead of a key of an earlier configuration; "" for a key
// that never was. Targets of discovery have the keys of targets.
func formerKey(path string) string {
	path = index.ReplaceAllString(path, "[]")
	if at, ok := strings.CutPrefix(path, "targets_from.srv[].target."); ok {
		path = "targets[]." + at
	}
	return formerKeys[path]
}

// formerVariables reports the variables of keys of an earlier configuration.
func (d *decoder) formerVariables(env environ) {
	var names []string
	hints := map[string]string{}
	for path, hint := range formerKeys {
		name := EnvPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
		if _, set := env[name]; set {
			names = append(names, name)
			hints[name] = hint
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.meaningless(name, env[name], hints[name])
	}
}
