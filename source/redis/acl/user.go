package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// User is one user of a server.
type User struct {
	Name string
	// For says in a few words who logs in with it.
	For string
	// PasswordHash is the SHA-256 of its password in hex, "" where that is not known.
	PasswordHash string
	// Commands, Keys and Channels are the rules, in the order in which the server
	// takes them: "+scan", "%R~*", "&locksteward:*".
	Commands, Keys, Channels []string
	// Notes are what a person should know, each a sentence.
	Notes []string
}

// Hash returns the SHA-256 of a password as an ACL takes it, "" for none.
func Hash(password locksteward.Secret) string {
	if password == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(password.Reveal()))
	return hex.EncodeToString(sum[:])
}

// Placeholder stands where the hash of a password belongs that is not known. No
// server takes it, so it cannot be left there by mistake.
func (u User) Placeholder() string { return "#SHA256-OF-THE-PASSWORD-OF-" + strings.ToUpper(u.Name) }

// Rules are the user's rules without its password.
func (u User) Rules() []string {
	return slices.Concat([]string{"resetchannels", "-@all"}, u.Commands, u.Keys, u.Channels)
}

func (u User) password() string {
	if u.PasswordHash == "" {
		return u.Placeholder()
	}
	return "#" + u.PasswordHash
}

// SetUser is the command that makes the user, or makes it what it should be, as
// redis-cli reads it: the server takes all of it in one step, or nothing.
func (u User) SetUser() string {
	words := slices.Concat([]string{"ACL", "SETUSER", u.Name, "reset", "on", u.password()}, u.Rules())
	for i, w := range words {
		if strings.ContainsAny(w, `"'`) {
			words[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `"`
		}
	}
	return strings.Join(words, " ")
}

// FileLine is the user's line in an ACL file, or in redis.conf.
func (u User) FileLine() string {
	return strings.Join(slices.Concat([]string{"user", u.Name, "on", u.password()}, u.Rules()), " ")
}

// validate refuses names and patterns that no server takes.
func (u User) validate() error {
	if u.Name == "" || strings.ContainsFunc(u.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("acl user: name %q is empty or has a blank; write one word: %w", u.Name, locksteward.ErrInvalid)
	}
	return nil
}

// pattern makes a pattern of a class one that an ACL takes: it cannot hold
// blanks and, in a file, control characters, each of which becomes a `?` that
// takes any byte there. To a server a bare [ begins a set, to a class it is wrong.
func pattern(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		c := glob[i]
		switch {
		case c == '\\' && i+1 < len(glob) && blank(glob[i+1]):
			i++
			b.WriteByte('?')
		case c == '\\' && i+1 < len(glob):
			b.WriteByte(c)
			i++
			b.WriteByte(glob[i])
		case blank(c):
			b.WriteByte('?')
		case c == '[':
			b.WriteString(`\[`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// blank is what an ACL's pattern cannot hold.
func blank(c byte) bool { return c <= ' ' || c == 0x7f }

// literal makes text match only itself in a pattern.
func literal(text string) string {
	return pattern(strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(text))
}

// unique keeps the first of equal rules.
func unique(rules []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(rules, func(rule string) bool {
		was := seen[rule]
		seen[rule] = true
		return was
	})
}
