package formats

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// A placeholder holds the place of a lock that was released with a delay, or taken
// over: a value of the format's own type with an owner that does not exist. To
// the library it is a lock that another process holds. Its TTL is the safety net
// of the job that lifts it: a renewer that does not compare may prolong it.

// placeholderMark begins the name of every such owner; the request id follows.
const placeholderMark = "locksteward-placeholder:"

// PlaceholderOwner returns the owner of the placeholder that a request writes.
func PlaceholderOwner(requestID string) string { return placeholderMark + requestID }

// scriptOptions is the last argument of every script: how the release is carried
// out. See opening.lua.
type scriptOptions struct {
	Alive       bool         `json:"alive,omitempty"`
	Aside       *int64       `json:"aside,omitempty"` // ms
	Placeholder *placeholder `json:"placeholder,omitempty"`
	Lift        bool         `json:"lift,omitempty"`
	Of          string       `json:"of,omitempty"`
}

func (o scriptOptions) json() string {
	raw, _ := json.Marshal(o) // texts and numbers cannot fail
	return string(raw)
}

// placeholder is a value that holds a lock's place.
type placeholder struct {
	Type string `json:"type"`
	// Name is the value of a string, the field of a hash or the member of a sorted
	// set that tells it from anything else.
	Name string `json:"name"`
	// Parts are the fields and values of a hash, that of Name first, or the members
	// of a sorted set.
	Parts []string `json:"parts,omitempty"`
	MS    int64    `json:"ms"`
}

func stringPlaceholder(owner string) placeholder { return placeholder{Type: typeString, Name: owner} }

// hashPlaceholder builds a hash in which the owner is a field with a count of 1.
func hashPlaceholder(suffix string, more ...string) func(owner string) placeholder {
	return func(owner string) placeholder {
		return placeholder{Type: typeHash, Name: owner + suffix, Parts: append([]string{owner + suffix, "1"}, more...)}
	}
}

// placeholderOf returns what a request puts in the place of a lock; the format
// allows it.
func (f *Format) placeholderOf(requestID string, ms int64) *placeholder {
	build := stringPlaceholder
	if f.placeholder != nil {
		build = f.placeholder
	}
	out := build(PlaceholderOwner(requestID))
	out.MS = ms
	return &out
}

// PlaceholderRequest returns the request that a placeholder names. It is not ok
// unless all that was read is a placeholder, in a form that a release writes. Any
// client can write the same: it holds a lock's place only if that request is known
// to have written it.
func PlaceholderRequest(s Sample) (requestID string, ok bool) {
	if !IsPlaceholder(s) {
		return "", false
	}
	for _, text := range markableTexts(s) {
		rest, marked := strings.CutPrefix(text, placeholderMark)
		if !marked {
			continue
		}
		id, _, _ := strings.Cut(rest, ":") // the id of a request has no colon
		if stringPlaceholder(PlaceholderOwner(id)).is(s) {
			return id, id != ""
		}
		for _, f := range withPlaceholder {
			if f.placeholder(PlaceholderOwner(id)).is(s) {
				return id, id != ""
			}
		}
	}
	return "", false
}

var withPlaceholder = with(func(f *Format) bool { return f.placeholder != nil })

// markableTexts returns the parts of a sample that may have the mark.
func markableTexts(s Sample) (texts []string) {
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

// is reports whether a sample is p and nothing else, its times apart.
func (p placeholder) is(s Sample) bool {
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

// IsPlaceholder reports whether what was read has the mark of a placeholder,
// regardless of its writer: it is never released as a lock.
func IsPlaceholder(s Sample) bool {
	switch s.Type {
	case typeString:
		return strings.HasPrefix(string(s.Value), placeholderMark)
	case typeHash:
		for field, value := range s.Fields {
			if strings.HasPrefix(field, placeholderMark) || field == "writer" && strings.HasPrefix(value, placeholderMark) {
				return true
			}
		}
	case typeZSet:
		for _, m := range s.Members {
			if strings.HasPrefix(m.Name, placeholderMark) {
				return true
			}
		}
	}
	return false
}

// WhyNoPlaceholder returns why no placeholder can hold the place of a lock of the
// format called name, with that expiry: no lock-delay and no take-over; "" where
// one can.
func WhyNoPlaceholder(name string, expireAt int64) string {
	if why := WhyNever(name); why != "" {
		return why
	}
	f, _ := Get(name)
	switch {
	case f.NoPlaceholder != "":
		return f.NoPlaceholder
	case f.waitersSleep && expireAt == locksteward.NoExpireAt:
		return "those who wait sleep until the expiry that they last saw, and this lock has none"
	case f.Type != typeString && f.placeholder == nil:
		return "nobody made a foreign owner of its form"
	}
	return ""
}

// Lift returns the command that removes the placeholder of the request of from the
// place of a lock of the format called name, and wakes the waiters. r needs no
// expiry.
func Lift(name, key, of string, r Release) (Command, error) {
	if err := r.check(key); err != nil {
		return Command{}, err
	}
	if why := WhyNoPlaceholder(name, 0); why != "" {
		return Command{}, &Refusal{Key: key, Format: name, Why: why}
	}
	f, _ := Get(name)
	p := newPlan(name, key, r)
	p.args[1] = "" // a renewer may have moved it
	p.options = scriptOptions{Lift: true, Of: of, Placeholder: f.placeholderOf(of, 1)}
	return f.release(Sample{Key: key, Type: p.options.Placeholder.Type}, p)
}
