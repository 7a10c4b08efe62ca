package users

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
)

// TokenPrefix begins every API token, so that secret scanners can find a leaked
// one.
const TokenPrefix = "lsu_"

const tokenBytes = 32

// NewToken returns a fresh API token and the digest that the file keeps of it.
func NewToken() (token locksteward.Secret, digest string) {
	raw := make([]byte, tokenBytes)
	// crypto/rand.Read never returns an error since Go 1.24.
	_, _ = rand.Read(raw)
	text := TokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(text))
	return locksteward.Secret(text), hex.EncodeToString(sum[:])
}

// NewUser is a user to be added.
type NewUser struct {
	Name  string
	Roles []Role
	Teams []string
	// External users sign in through a proxy or OIDC, and get no token.
	External bool
}

// Add is [AddUser] of a name with roles.
func Add(path, name string, roles []Role) (locksteward.Secret, error) {
	return AddUser(path, NewUser{Name: name, Roles: roles})
}

// AddUser appends a user with a fresh token to the file at path, which need not
// exist, and returns the token: the only time it can be seen; "" for an external
// user. Comments and order of the file are kept. A name that is taken is an error
// that wraps locksteward.ErrConflict; a bad name, role or team wraps
// locksteward.ErrInvalid. The file is left as it was on every error.
func AddUser(path string, u NewUser) (locksteward.Secret, error) {
	if err := u.check(); err != nil {
		return "", fmt.Errorf("add user %q: %w: %w", u.Name, locksteward.ErrInvalid, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("add user %q: %w", u.Name, err)
	}
	var token locksteward.Secret
	var digest string
	if !u.External {
		token, digest = NewToken()
	}
	err := change(path, func(set *Set, list *yaml.Node) error {
		for _, a := range set.Accounts() {
			if a.Name == u.Name {
				return fmt.Errorf("%w: %q is in %q already: choose another name or remove that entry", locksteward.ErrConflict, u.Name, path)
			}
		}
		entry, err := u.entry(digest)
		if err == nil {
			list.Content = append(list.Content, entry)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("add user %q: %w", u.Name, err)
	}
	return token, nil
}

func (u NewUser) check() error {
	var errs []error
	if !ValidName(u.Name) {
		errs = append(errs, errors.New("a name is "+nameRule))
	}
	if len(u.Roles) == 0 {
		errs = append(errs, errors.New("give at least one role of "+roleNames()))
	}
	for _, r := range u.Roles {
		_, err := ParseRole(string(r))
		errs = append(errs, err)
	}
	for _, t := range u.Teams {
		if !ValidTeam(t) {
			errs = append(errs, fmt.Errorf("team %q: must be %s", t, teamRule))
		}
	}
	return errors.Join(errs...)
}

// entry is the user as the file has it.
func (u NewUser) entry(digest string) (*yaml.Node, error) {
	written := struct {
		Name        string   `yaml:"name"`
		Roles       []Role   `yaml:"roles,flow"`
		Teams       []string `yaml:"teams,flow,omitempty"`
		External    bool     `yaml:"external,omitempty"`
		TokenSHA256 []string `yaml:"token_sha256,omitempty"`
	}{Name: u.Name, Roles: u.Roles, Teams: u.Teams, External: u.External}
	if digest != "" {
		written.TokenSHA256 = []string{digest}
	}
	var entry yaml.Node
	if err := entry.Encode(written); err != nil {
		return nil, fmt.Errorf("encode user: %w", err)
	}
	return &entry, nil
}
