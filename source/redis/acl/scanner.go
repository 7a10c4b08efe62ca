package acl

import (
	"slices"
	"strings"

	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// DefaultScanner and DefaultReleaser are the users' names unless configured.
const (
	DefaultScanner  = "scanner"
	DefaultReleaser = "releaser"
)

// Scan says what the scanner is to see.
type Scan struct {
	Name string // "" is [DefaultScanner]
	Hash string // of its password
	// Read are the patterns of the keys whose values it may read; none is all.
	// With some, the auxiliary keys of Locksteward and of lock libraries are added.
	Read []string
	// MetaPrefixes are the prefixes of companions beside record.DefaultPrefix.
	MetaPrefixes []string
	// Keyspace are rules for a watch by keyspace notifications, see
	// redis.ACLKeyspace; none where it watches by tracking.
	Keyspace []string
	// NoSelfCheck leaves out the right to ask the server for its own rights.
	NoSelfCheck bool
}

// Scanner returns the user that `run`, `scan`, `explain` and `doctor` log in
// with: it reads, and can do nothing else.
func Scanner(v Version, s Scan) (User, error) {
	if err := v.check(); err != nil {
		return User{}, err
	}
	u := User{Name: s.Name, For: "the agent, scan, explain and doctor: reads, and nothing else", PasswordHash: s.Hash}
	if u.Name == "" {
		u.Name = DefaultScanner
	}
	base := redis.ACL()
	more := []string{redis.ACLNoTouch}
	if !s.NoSelfCheck {
		more = append(more, "+acl|dryrun")
	}
	u.Commands = unique(commands(v, slices.Concat(base, more, s.Keyspace)...))
	for _, rule := range slices.Concat(base, s.Keyspace) {
		if strings.HasPrefix(rule, "&") {
			u.Channels = append(u.Channels, rule)
		}
	}
	read := []string{"*"}
	if len(s.Read) > 0 {
		read = nil
		for _, glob := range s.Read {
			read = append(read, pattern(glob))
		}
		for _, prefix := range prefixes(s.MetaPrefixes) {
			read = append(read, literal(prefix)+"*")
		}
		for _, f := range formats.All() {
			read = append(read, f.ScannerReads...)
		}
		u.Notes = append(u.Notes, "Only what these patterns match is read; other locks are counted as forbidden. The names of all keys are visible to SCAN all the same.")
	} else {
		u.Notes = append(u.Notes, "It may read every value. --read GLOB keeps it to some; the names of all keys are visible to SCAN in any case.")
	}
	for _, glob := range read {
		u.Keys = append(u.Keys, v.reads(glob))
	}
	u.Keys = unique(u.Keys)
	if !v.readPatterns() {
		u.Notes = append(u.Notes, "Before Redis 7.0 a pattern cannot be for reading alone: that nothing is written follows from the commands.")
	}
	return u, u.validate()
}

// prefixes are all prefixes of companions, the default first, each once.
func prefixes(more []string) []string {
	list := []string{record.DefaultPrefix}
	for _, p := range more {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
