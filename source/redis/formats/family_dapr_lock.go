package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyDaprLock is Dapr's lock API on Redis: the text that the caller gave as
// lockOwner under lock||<app id>||<resource>.
// Source: dapr/components-contrib lock/redis/standalone.go; dapr/dapr pkg/components/lock/lock_config.go.
var familyDaprLock = &family{
	name: "dapr-lock",
	typ:  typeString,
	key:  prefixed("lock||"),
	recognise: func(s Sample) (Decoded, bool) {
		text := string(s.Value)
		if !whole(s) || text == "" {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   lineage(s), // an owner's name may come again
			Count:      1,
			Waiters:    -1, // they try again
			TokenKind:  "the owner's name, as the caller gave it",
		}
		kind, holder := sharedKind(text)
		if kind != "" {
			d.SharedToken, d.TokenKind = true, kind
		}
		d.Holder = holder
		if app, _, ok := strings.Cut(strings.TrimPrefix(s.Key, "lock||"), "||"); ok {
			d.Holder.App = app
		}
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) { return p.command(tokenLua, nil, s.Value), nil },
}
