package alert

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// hidesNames says that key_names keeps the names of locks from the receiver.
func (a addressee) hidesNames() bool { return a.keyNames != "" && a.keyNames != KeyNamesFull }

// placeholder is what the receiver gets in place of the name of a lock: with "hash" a
// number that is the same for the same name and that nobody without the salt can make,
// with "template" the pattern of the class that the name matches, else unmatched. shown
// is the name as [locksteward.DisplayKey] writes it, and stands for a key that is not known.
func (a addressee) placeholder(class, key, shown, unmatched string) string {
	if key == "" {
		return ""
	}
	if a.keyNames == KeyNamesHash {
		return "key:" + a.saltedHash(shown)
	}
	pattern := ""
	if a.hooks.Pattern != nil {
		pattern = a.hooks.Pattern(class, key)
	}
	// A pattern without a wildcard is the name itself.
	if pattern == "" || strings.Contains(pattern, key) {
		return unmatched
	}
	return pattern
}

func (a addressee) saltedHash(text string) string {
	sum := sha256.New()
	sum.Write([]byte(strconv.Itoa(len(a.hooks.Salt)) + ":"))
	sum.Write(a.hooks.Salt)
	sum.Write([]byte(text))
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// event is a change as the receiver may see it.
func (a addressee) event(t Change) Event {
	return Event{EventID: t.EventID, Seq: t.Seq, At: stamp(t.At), Finding: a.finding(t.Finding)}
}

// finding converts a finding. Where names are hidden its texts are rendered with
// placeholders; the evidence of custom rules is left out, since it quotes what their
// expressions read. The fingerprint stays: it ties a resolve to its fire.
func (a addressee) finding(f locksteward.Finding) api.Finding {
	if !a.hidesNames() {
		return api.NewFinding(f, a.lang)
	}
	name := locksteward.DisplayKey(f.Key)
	own := a.placeholder(f.Class, f.Key, name, cmp.Or(f.Class, "lock"))
	shown := api.NewFindingNaming(f, a.lang, func(other string) string {
		if other == name {
			return own
		}
		return a.placeholder(f.Class, other, other, "lock")
	})
	shown.Key = api.Key{Key: own}
	if strings.HasPrefix(f.Rule, "custom/") {
		shown.Evidence, shown.CounterEvidence = []string{say(a.lang, "hidden")}, []string{}
	}
	return shown
}

// hideNames puts placeholders into the group and the request of a message; its findings
// have them already. What people wrote may name locks, and so is left out, and so is
// why a release failed.
func (a addressee) hideNames(p *Payload) {
	if !a.hidesNames() {
		return
	}
	if p.Group != nil && p.Group.Labels["key"] != "" {
		g := *p.Group // other messages may share it
		class := ""
		if len(p.Findings) > 0 {
			class = p.Findings[0].Class
		}
		name := g.Labels["key"]
		g.Labels = maps.Clone(g.Labels)
		g.Labels["key"] = a.placeholder(class, name, name, cmp.Or(class, "lock"))
		g.Key = "group:" + a.saltedHash(g.Key)
		p.Group = &g
	}
	if p.Release == nil || p.Release.Request == nil {
		return
	}
	q, hidden := p.Release.Request, say(a.lang, "hidden")
	key := nameOf(q.Key)
	q.Key = api.Key{Key: a.placeholder(q.Class, key, locksteward.DisplayKey(key), cmp.Or(q.Class, "lock"))}
	if q.Reason != "" {
		q.Reason = hidden
	}
	q.Decisions = slices.Clone(q.Decisions)
	for i := range q.Decisions {
		if q.Decisions[i].Reason != "" {
			q.Decisions[i].Reason = hidden
		}
	}
	if s := locksteward.RequestState(q.State); s == locksteward.RequestFailed || s == locksteward.RequestUnknown {
		q.Outcome, p.Release.Text = hidden, hidden
	}
}

// nameOf returns the exact name of a lock.
func nameOf(k api.Key) string {
	name, err := k.Bytes()
	if err != nil {
		return k.Key
	}
	return name
}
