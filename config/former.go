package config

import (
	"fmt"
	"regexp"
	"strings"
)

// former is a key that an earlier configuration had.
type former struct {
	// hint is what to write instead.
	hint string
	// key is the key that is written instead, in the same block; "": none, or one elsewhere.
	// That it is missing is not said as well.
	key string
}

// formerKeys are the keys that an earlier configuration had. Nothing else knows them.
var formerKeys = map[string]former{
	"alert.first_survey":                {hint: "write alert.first_sweep instead"},
	"alert.queue_size":                  {hint: "the store bounds what waits: leave it out"},
	"alert.receivers[].webhook":         formerKind("webhook"),
	"alert.receivers[].alertmanager":    formerKind("alertmanager"),
	"alert.receivers[].pagerduty":       formerKind("pagerduty"),
	"alert.receivers[].email":           formerKind("email"),
	"alert.receivers[].slack":           formerKind("slack"),
	"alert.receivers[].dingtalk":        formerKind("dingtalk"),
	"alert.receivers[].feishu":          formerKind("feishu"),
	"alert.receivers[].wecom":           formerKind("wecom"),
	"alert.receivers[].secret_file":     {hint: "write secret_files: [FILE] instead"},
	"alert.receivers[].secret":          {hint: "write secrets: [${NAME}] instead"},
	"alert.receivers[].at_mobiles":      {hint: "write mention: [NUMBER, …] instead"},
	"alert.receivers[].at_all":          {hint: "write mention: [all] instead"},
	"alert.receivers[].at":              {hint: "write mention: [ID, …] instead"},
	"alert.receivers[].mentioned_users": {hint: "write mention: [ID, …] instead"},
	"console.lockout.time":              {hint: "a lockout lasts as long as console.lockout.window: leave it out"},
	"console.rate.burst":                {hint: "it is twice console.rate.per_second: leave it out"},
	"metrics.max_series":                {hint: "set sample_limit in Prometheus instead"},
	"release.freeze":                    {hint: "write release.pause_windows instead"},
	"release.kill_switch":               {hint: "write release.paused instead"},
	"store.on_damage":                   {hint: "a damaged store is refused: leave it out"},
	"targets[].max_server_share":        {hint: "write pace: {idle: 10%, busy: 1%} instead"},
	"targets[].redis":                   {hint: "write targets[].url instead", key: "url"},
}

// formerKind is the block of one kind of receiver, whose keys are now those of the receiver.
func formerKind(kind string) former {
	return former{hint: "write kind: " + kind + " and the keys of this block in its place, as keys of the receiver (docs/receivers.md)", key: "kind"}
}

// formerKey returns what is known of a key of an earlier configuration; false for a key that
// never was. Targets of discovery have the keys of targets.
func formerKey(path string) (former, bool) {
	path = index.ReplaceAllString(path, "[]")
	if at, ok := strings.CutPrefix(path, "targets_from.srv[].target."); ok {
		path = "targets[]." + at
	}
	f, ok := formerKeys[path]
	return f, ok
}

var (
	number       = regexp.MustCompile(`_\d+_`)
	ofFormerKind = regexp.MustCompile(`^(.*_ALERT_RECEIVERS_\d+)_(WEBHOOK|ALERTMANAGER|PAGERDUTY|EMAIL|SLACK|DINGTALK|FEISHU|WECOM)_(.+)$`)
)

// formerVariable is what to write instead of the variable of a key of an earlier configuration;
// "" for one that never was.
func formerVariable(name string) string {
	if m := ofFormerKind.FindStringSubmatch(name); m != nil {
		return fmt.Sprintf("write %s_KIND=%s and %s_%s instead", m[1], strings.ToLower(m[2]), m[1], m[3])
	}
	name = number.ReplaceAllString(name, "_0_")
	for path, f := range formerKeys {
		if name == Variable(strings.ReplaceAll(path, "[]", "[0]")) {
			return f.hint
		}
	}
	return ""
}
