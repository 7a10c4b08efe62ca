package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

// Free says which locks the releaser is for.
type Free struct {
	Name string // "" is [DefaultReleaser]
	Hash string // of its password
	// Classes are all configured classes, in their order; those with release off
	// get no pattern.
	Classes []class.Class
	// MetaPrefixes are the prefixes of companions beside record.DefaultPrefix.
	MetaPrefixes []string
}

// Releaser returns the user that deletes locks of the classes whose release is
// not off, through the scripts of package releaser: it cannot scan, and has no
// keys but those locks and what stands beside them. An error wraps
// locksteward.ErrRefused if there is no such class.
func Releaser(v Version, f Free) (User, error) {
	if err := v.check(); err != nil {
		return User{}, err
	}
	u := User{Name: f.Name, For: "approved releases: deletes locks of releasable classes, and nothing else", PasswordHash: f.Hash}
	if u.Name == "" {
		u.Name = DefaultReleaser
	}
	u.Commands = unique(commands(v, append(releaser.ACL(nil, nil), "+client|no-touch")...))
	var open, shut []class.Class
	for _, c := range f.Classes {
		if c.Releasable() {
			open = append(open, c)
		} else {
			shut = append(shut, c)
		}
	}
	if len(open) == 0 {
		return User{}, fmt.Errorf("no class may be released, so there is no releaser to make; set release: approve on a class: %w", locksteward.ErrRefused)
	}
	names := prefixes(f.MetaPrefixes)
	for _, c := range open {
		for _, glob := range c.Match {
			grantRelease(&u, pattern(glob), names)
		}
		u.Notes = append(u.Notes, overlaps(c, shut)...)
	}
	for _, prefix := range names {
		u.Channels = append(u.Channels, "&"+literal(prefix)+"instance:*")
	}
	u.Keys, u.Channels = unique(u.Keys), unique(u.Channels)
	return u, u.validate()
}

// overlaps warns of classes that nobody may release and whose keys may lie
// inside the patterns of one that somebody may: an ACL knows no exceptions.
func overlaps(c class.Class, shut []class.Class) (notes []string) {
	for _, other := range shut {
		for _, mine := range c.Match {
			if slices.ContainsFunc(other.Match, func(theirs string) bool { return mayOverlap(mine, theirs) }) {
				notes = append(notes, fmt.Sprintf("class %q has release: off, but keys of it may match %q of class %q: the server would let the releaser delete them, the agent does not.",
					other.Name, mine, c.Name))
			}
		}
	}
	return notes
}

// mayOverlap says that no difference of their beginnings keeps two patterns apart.
func mayOverlap(a, b string) bool {
	a, b = class.LiteralPrefix(a), class.LiteralPrefix(b)
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// companions are the two forms of a companion's name, for locks that match glob:
// see record.Companion. The second is for locks with braces in their names.
func companions(prefix string, kind record.Kind, glob string) []string {
	head := literal(prefix) + string(kind) + ":"
	return []string{head + "{" + glob + "}", head + "{*}:" + glob}
}

// grantRelease adds the keys and channels that a release of locks that match glob
// reads, writes and publishes to.
func grantRelease(u *User, glob string, metaPrefixes []string) {
	key := func(patterns ...string) {
		for _, p := range patterns {
			u.Keys = append(u.Keys, "~"+p)
		}
	}
	publish := func(patterns ...string) {
		for _, p := range patterns {
			u.Channels = append(u.Channels, "&"+p)
		}
	}
	key(glob)
	for _, prefix := range metaPrefixes {
		for _, kind := range []record.Kind{record.KindExec, record.KindHold, record.KindQueue, record.KindWaiter, record.KindUndo} {
			key(companions(prefix, kind, glob)...)
		}
		for _, p := range companions(prefix, record.KindWake, glob) {
			publish(p + ":*")
		}
	}
	for _, f := range formats.All() {
		if f.Grants != nil {
			keys, channels := f.Grants(glob)
			key(keys...)
			publish(channels...)
		}
	}
}
