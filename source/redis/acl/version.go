package acl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

// Version is a server's product and version, as far as ACLs differ by it.
type Version struct {
	Valkey       bool
	Major, Minor int
}

// Floor is the oldest server whose ACLs know channels: Redis 6.2.
var Floor = Version{Major: 6, Minor: 2}

// Known are the versions that the lists are made for.
var Known = []Version{
	Floor,
	{Major: 7, Minor: 0},
	{Major: 7, Minor: 2},
	{Major: 7, Minor: 4},
	{Major: 8, Minor: 0},
	{Valkey: true, Major: 7, Minor: 2},
	{Valkey: true, Major: 8, Minor: 0},
	{Valkey: true, Major: 9, Minor: 0},
}

// ParseVersion reads "7.0", "7.0.15", "redis 8", "valkey 8.0" or "valkey-8.0.1".
func ParseVersion(text string) (Version, error) {
	var v Version
	rest := strings.ToLower(strings.TrimSpace(text))
	if after, ok := strings.CutPrefix(rest, "valkey"); ok {
		v.Valkey, rest = true, after
	} else {
		rest = strings.TrimPrefix(rest, "redis")
	}
	rest = strings.TrimLeft(rest, " -:/v")
	major, minor, _ := strings.Cut(rest, ".")
	minor, _, _ = strings.Cut(minor, ".")
	var err error
	if v.Major, err = strconv.Atoi(major); err == nil && minor != "" {
		v.Minor, err = strconv.Atoi(minor)
	}
	if err != nil || v.Major < 0 || v.Minor < 0 {
		return Version{}, fmt.Errorf("server version: got %q, write 7.0, 8.2 or \"valkey 8.0\": %w", text, locksteward.ErrInvalid)
	}
	return v, v.check()
}

// VersionOf reads the version from a server's INFO server; ok is false for a
// server that tells none, as some proxies do.
func VersionOf(info string) (v Version, ok bool) {
	field := func(name string) string {
		for line := range strings.Lines(info) {
			if value, is := strings.CutPrefix(line, name+":"); is {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	text := field("valkey_version")
	if text != "" {
		v.Valkey = true
	} else {
		text = field("redis_version")
	}
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 {
		return Version{}, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return Version{}, false
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return Version{}, false
	}
	v.Major, v.Minor = major, minor
	return v, true
}

// check refuses servers whose ACLs cannot say what is needed.
func (v Version) check() error {
	switch {
	case v.Valkey && !v.since(7, 2):
		return fmt.Errorf("server version: there is no %s, Valkey began at 7.2: %w", v, locksteward.ErrInvalid)
	case v.Major < 6:
		return fmt.Errorf("server version: %s has no ACLs, they came with 6.0; give it a requirepass and let nobody else in: %w", v, locksteward.ErrInvalid)
	case !v.since(Floor.Major, Floor.Minor):
		return fmt.Errorf("server version: the ACLs of %s know no channels, they came with 6.2; update the server: %w", v, locksteward.ErrInvalid)
	}
	return nil
}

// String returns "redis 7.0" or "valkey 8.0".
func (v Version) String() string {
	name := "redis"
	if v.Valkey {
		name = "valkey"
	}
	return fmt.Sprintf("%s %d.%d", name, v.Major, v.Minor)
}

// since says that the server has what came with that version of Redis. Valkey
// left Redis at 7.2.4 and has nothing that came to Redis later under its number.
func (v Version) since(major, minor int) bool {
	if v.Valkey && (major > 7 || major == 7 && minor > 2) {
		return false
	}
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// readPatterns says that a pattern may be for reading alone (%R~), 7.0.
func (v Version) readPatterns() bool { return v.since(7, 0) }

// reads writes a pattern of keys that may be read and not written. Before 7.0
// there is no such thing, and the commands alone see to it.
func (v Version) reads(pattern string) string {
	if v.readPatterns() {
		return "%R~" + pattern
	}
	return "~" + pattern
}

// AtLeast says that the server has what came with that version of Redis.
func (v Version) AtLeast(major, minor int) bool { return v.since(major, minor) }
