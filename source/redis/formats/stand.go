package formats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// What stands in the place of a lock that was released with a delay, or taken
// over: a value of the dialect's own type with an owner that nobody is. To the
// library it is a lock that another process holds. Its TTL is the safety net of
// the job that lifts it: a renewer that does not compare may prolong it.

// standMark begins the name of every such owner; the request id follows.
const standMark = "locksteward-stand:"

// StandOwner is the owner that stands in a lock's place by a request.
func StandOwner(requestID string) string { return standMark + requestID }

// how is the last argument of every script: how the release is done. See
// opening.lua.
type how struct {
	Alive bool   `json:"alive,omitempty"`
	Aside *int64 `json:"aside,omitempty"` // ms
	Stand *stand `json:"stand,omitempty"`
	Lift  bool   `json:"lift,omitempty"`
	Of    string `json:"of,omitempty"`
}

func (h how) json() string {
	raw, _ := json.Marshal(h) // texts and numbers cannot fail
	return string(raw)
}

// stand is what stands in a lock's place.
type stand struct {
	Type string `json:"type"`
	// Name is the value of a string, the field of a hash or the member of a sorted
	// set that tells it from anything else.
	Name string `json:"name"`
	// Parts are the fields and values of a hash, that of Name first, or the members
	// of a sorted set.
	Parts []string `json:"parts,omitempty"`
	MS    int64    `json:"ms"`
}

// stander makes what stands in the place of a family's locks.
type stander func(owner string) stand

func standString(owner string) stand { return stand{Type: typeString, Name: owner} }

// standHash makes a hash in which the owner is a field with a count of 1.
func standHash(suffix string, more ...string) stander {
	return func(owner string) stand {
		return stand{Type: typeHash, Name: owner + suffix, Parts: append([]string{owner + suffix, "1"}, more...)}
	}
}

// standOf is what a release puts in a lock's place; the dialect allows it.
func standOf(name string, r Release) stand {
	build := stander(standString)
	if d, ok := Get(name); ok {
		if f, ok := d.(*family); ok && f.stand != nil {
			build = f.stand
		}
	}
	out := build(StandOwner(r.RequestID))
	out.MS = r.Stand.Milliseconds()
	return out
}

// StandOf returns the request that a placeholder names. It is not ok unless all that
// was read is a placeholder, in a form that a release writes. Any client can write the
// same: it keeps a lock's place only if that request is known to have put it there.
func StandOf(s Sample) (requestID string, ok bool) {
	if !IsStand(s) {
		return "", false
	}
	for _, text := range standTexts(s) {
		rest, marked := strings.CutPrefix(text, standMark)
		if !marked {
			continue
		}
		id, _, _ := strings.Cut(rest, ":") // of a request has no colon
		if standString(StandOwner(id)).is(s) {
			return id, id != ""
		}
		for _, f := range families {
			if f.stand != nil && f.stand(StandOwner(id)).is(s) {
				return id, id != ""
			}
		}
	}
	return "", false
}

// standTexts are the parts of a sample that may have the mark.
func standTexts(s Sample) (texts []string) {
	switch s.Type {
	case typeString:
		texts = append(texts, string(s.Value))
	case typeHash:
		for field, value := range s.Fields {
			texts = append(texts, field)
			if field == "writer" {
				texts = append(texts, value)
			}
		}
	case typeZSet:
		for _, m := range s.Members {
			texts = append(texts, m.Name)
		}
	}
	return texts
}

// is says that a sample is p and nothing else, its times apart.
func (p stand) is(s Sample) bool {
	if s.Type != p.Type || s.TooLarge {
		return false
	}
	switch p.Type {
	case typeString:
		return whole(s) && string(s.Value) == p.Name
	case typeHash:
		if int64(len(p.Parts)) != 2*s.Size {
			return false
		}
		for i := 0; i < len(p.Parts); i += 2 {
			if value, ok := s.Fields[p.Parts[i]]; !ok || value != p.Parts[i+1] {
				return false
			}
		}
		return true
	default:
		return int64(len(p.Parts)) == s.Size && len(s.Members) == len(p.Parts) &&
			!slices.ContainsFunc(s.Members, func(m Member) bool { return !slices.Contains(p.Parts, m.Name) })
	}
}

// IsStand says that what was read has the mark of a placeholder, whoever wrote it: it
// is never released as a lock.
func IsStand(s Sample) bool {
	switch s.Type {
	case typeString:
		return strings.HasPrefix(string(s.Value), standMark)
	case typeHash:
		for field, value := range s.Fields {
			if strings.HasPrefix(field, standMark) || field == "writer" && strings.HasPrefix(value, standMark) {
				return true
			}
		}
	case typeZSet:
		for _, m := range s.Members {
			if strings.HasPrefix(m.Name, standMark) {
				return true
			}
		}
	}
	return false
}

// Reasons why nothing may stand in the place of a family's locks.
const (
	noStandBlocks = "those who wait block without limit, so that they would sleep on if nobody lived to wake them"
	noStandTime   = "its value is read as a time, and a foreign owner has none"
	noStandShared = "several hold it at once, and one more of them keeps nobody out"
	noStandParts  = "it is one part of several that the library keeps together"
	noStandTask   = "its value is the id of a task, which callers are given"
)

// WhyNoStand says why nothing can stand in the place of a lock of the dialect
// called name, with that expiry: no lock-delay and no take-over; "" where it can.
func WhyNoStand(name string, expireAt int64) string {
	if why := WhyNever(name); why != "" {
		return why
	}
	d, _ := Get(name)
	f, ok := d.(*family)
	switch {
	case !ok:
		return "" // locksteward and token: one string, and who waits asks again
	case f.noStand != "":
		return f.noStand
	case f.sleeps && expireAt == locksteward.NoExpireAt:
		return "those who wait sleep until the expiry that they last saw, and this lock has none"
	case f.typ != typeString && f.stand == nil:
		return "nobody made a foreign owner of its form"
	}
	return ""
}

// Lift removes what the request of put in the place of a lock of the dialect
// called name, and wakes who waits. r needs no expiry.
func Lift(name, key, of string, r Release) (Command, error) {
	if err := r.check(key); err != nil {
		return Command{}, err
	}
	if why := WhyNoStand(name, 0); why != "" {
		return Command{}, &Refusal{Key: key, Dialect: name, Why: why}
	}
	p := newPlan(name, key, r)
	p.args[1] = "" // a renewer may have moved it
	stand := standOf(name, Release{RequestID: of, Stand: 1})
	p.how = how{Lift: true, Of: of, Stand: &stand}
	empty := Sample{Key: key, Type: stand.Type}
	switch d, _ := Get(name); d := d.(type) {
	case lockstewardDialect:
		return d.command(empty, p), nil
	case tokenDialect:
		return p.command(tokenLua, nil, ""), nil
	case *family:
		return d.release(empty, p)
	default:
		return Command{}, fmt.Errorf("lift %q: no dialect is called %q: %w", locksteward.DisplayKey(key), name, locksteward.ErrRefused)
	}
}
