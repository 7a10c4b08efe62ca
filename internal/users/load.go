package users

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
)

// file is users.yaml.
type file struct {
	Users []record `yaml:"users"`
}

type record struct {
	Name        string   `yaml:"name"`
	Roles       []string `yaml:"roles"`
	Teams       []string `yaml:"teams"`
	Disabled    bool     `yaml:"disabled"`
	External    bool     `yaml:"external"`
	TokenSHA256 []string `yaml:"token_sha256"`
	// PasswordHash is bcrypt or argon2id.
	PasswordHash locksteward.Secret `yaml:"password_hash"`
}

// namePattern keeps names fit for logs, audit lines and command lines.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

// teamPattern is a name, or a path as some providers write groups.
var teamPattern = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._@/+-]{0,63}$`)

// agentName is what the agent calls itself in the audit trail and as a requester.
const agentName = "agent"

// ValidName says whether this can be the name of a user.
func ValidName(name string) bool {
	return namePattern.MatchString(name) && !strings.EqualFold(name, agentName)
}

// ValidTeam says whether this can be the name of a team.
func ValidTeam(name string) bool { return teamPattern.MatchString(name) }

const (
	nameRule = "1 to 64 letters, digits or . _ @ + -, and not agent"
	teamRule = "1 to 64 letters, digits or . _ @ / + -"
)

// Load reads a users file strictly: unknown keys and every other problem are
// reported together, each with its path. A file that does not exist is a Set
// without users; so is the path "".
func Load(path string) (*Set, error) {
	if path == "" {
		return newSet(nil), nil
	}
	raw, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newSet(nil), nil
	}
	if err != nil {
		return nil, err
	}
	return parse(path, raw)
}

func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read users file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read users file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read users file %q: must be a regular file", path)
	}
	// Windows reports made-up modes, without these bits unless read-only is off.
	if mode := info.Mode().Perm(); mode&0o022 != 0 && os.PathSeparator == '/' {
		return nil, fmt.Errorf("read users file %q: other accounts may write it (mode %04o): run `chmod 600 %s`", path, mode, path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read users file: %w", err)
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("read users file %q: larger than %d bytes", path, maxFile)
	}
	return raw, nil
}

const maxFile = 4 << 20

// unknownKey is how the YAML library reports a key that a struct does not have.
var unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)

const knownKeys = "a user has name, roles, teams, disabled, external, token_sha256 and password_hash, and all are below users"

func parse(path string, raw []byte) (*Set, error) {
	var f file
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("parse users file %q: %s", path, unknownKey.ReplaceAllString(err.Error(), "unknown key $1: "+knownKeys))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("parse users file %q: must hold one YAML document", path)
	}
	accounts, errs := check(f)
	if len(errs) > 0 {
		return nil, fmt.Errorf("users file %q:\n%w", path, errors.Join(errs...))
	}
	return newSet(accounts), nil
}

func check(f file) ([]account, []error) {
	var (
		out    []account
		errs   []error
		names  = map[string]int{}
		digest = map[[sha256.Size]byte]string{}
	)
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for i, r := range f.Users {
		at := fmt.Sprintf("users[%d]", i)
		a := account{user: User{Name: r.Name}, disabled: r.Disabled, external: r.External}
		if !ValidName(r.Name) {
			bad("%s.name: must be %s, got %q", at, nameRule, r.Name)
		}
		// Names that differ in case only would be two people to the four-eyes
		// rule and one to everybody else.
		if first, dup := names[strings.ToLower(r.Name)]; dup {
			bad("%s.name: %q is already users[%d]", at, r.Name, first)
		} else {
			names[strings.ToLower(r.Name)] = i
		}
		if len(r.Roles) == 0 {
			bad("%s.roles: must name at least one of %s", at, roleNames())
		}
		for j, text := range r.Roles {
			role, err := ParseRole(text)
			if err != nil {
				bad("%s.roles[%d]: must be one of %s, got %q", at, j, roleNames(), text)
				continue
			}
			a.user.Roles = append(a.user.Roles, role)
		}
		for j, team := range r.Teams {
			if !ValidTeam(team) {
				bad("%s.teams[%d]: must be %s, got %q", at, j, teamRule, team)
			}
			a.user.Teams = append(a.user.Teams, team)
		}
		for j, text := range r.TokenSHA256 {
			sum, err := parseDigest(text)
			if err != nil {
				bad("%s.token_sha256[%d]: %w", at, j, err)
				continue
			}
			if other, dup := digest[sum]; dup {
				bad("%s.token_sha256[%d]: is the token of %q too: each token names one user", at, j, other)
			}
			digest[sum] = r.Name
			a.tokens = append(a.tokens, sum)
		}
		if r.PasswordHash != "" {
			var err error
			if a.password, err = parseHash(r.PasswordHash.Reveal()); err != nil {
				bad("%s.password_hash: %w", at, err)
				a.password = hash{text: "unreadable"}
			}
		}
		if len(r.TokenSHA256) == 0 && a.password.text == "" && !a.external {
			bad("%s: has neither token_sha256 nor password_hash, so that nobody can be %q; external: true is for those who sign in through a proxy or OIDC", at, r.Name)
		}
		out = append(out, a)
	}
	return out, errs
}

// parseDigest does not show what it got: a person may have pasted the token.
func parseDigest(text string) ([sha256.Size]byte, error) {
	var sum [sha256.Size]byte
	if strings.HasPrefix(text, TokenPrefix) {
		return sum, errors.New("holds a token in clear: write its sha256 in hex, and replace that token")
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != sha256.Size {
		return sum, fmt.Errorf("must be %d hex characters, got %d", 2*sha256.Size, len(text))
	}
	copy(sum[:], raw)
	return sum, nil
}
