package users

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
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

// Add appends a user with a fresh token to the file at path, which need not
// exist, and returns the token: the only time it can be seen. Comments and order
// of the file are kept. A name that is taken is an error that wraps
// locksteward.ErrConflict; a bad name or role wraps locksteward.ErrInvalid. The
// file is left as it was on every error.
func Add(path, name string, roles []Role) (locksteward.Secret, error) {
	if !namePattern.MatchString(name) {
		return "", fmt.Errorf("add user %q: %w: a name is 1 to 64 letters, digits or . _ @ -", name, locksteward.ErrInvalid)
	}
	if len(roles) == 0 {
		return "", fmt.Errorf("add user %q: %w: give at least one role of %s", name, locksteward.ErrInvalid, roleNames())
	}
	for _, r := range roles {
		if _, err := ParseRole(string(r)); err != nil {
			return "", fmt.Errorf("add user %q: %w: %w", name, locksteward.ErrInvalid, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("add user %q: %w", name, err)
	}
	token, digest := NewToken()
	err := replace(path, func(old []byte) ([]byte, error) {
		set, err := parse(path, old)
		if err != nil {
			return nil, err
		}
		for _, u := range set.Users() {
			if u.Name == name {
				return nil, fmt.Errorf("%w: %q is in %q already: choose another name or remove that entry", locksteward.ErrConflict, name, path)
			}
		}
		updated, err := appendUser(old, name, roles, digest)
		if err != nil {
			return nil, err
		}
		// What is about to be written must load: a file that cannot be read
		// would lock everybody out at the next reload.
		if _, err := parse(path, updated); err != nil {
			return nil, err
		}
		return updated, nil
	})
	if err != nil {
		return "", fmt.Errorf("add user %q: %w", name, err)
	}
	return token, nil
}

// appendUser edits the YAML tree, not the text, so that comments stay.
func appendUser(old []byte, name string, roles []Role, digest string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(old, &doc); err != nil {
		return nil, fmt.Errorf("parse users file: %w", err)
	}
	if doc.Kind == 0 || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		// An empty file, or one of comments alone.
		doc = yaml.Node{Kind: yaml.DocumentNode, HeadComment: doc.HeadComment, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
		if len(bytes.TrimSpace(old)) == 0 {
			doc.HeadComment = "# Users of the Locksteward console and API. Written by `locksteward users add`.\n# It holds digests of tokens, never a token."
		}
	}
	root := doc.Content[0]
	var list *yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "users" {
			list = root.Content[i+1]
		}
	}
	if list == nil {
		list = &yaml.Node{}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "users"}, list)
	}
	if list.Kind != yaml.SequenceNode {
		*list = yaml.Node{Kind: yaml.SequenceNode}
	}
	list.Style = 0
	rec := record{Name: name, TokenSHA256: []string{digest}}
	for _, r := range roles {
		rec.Roles = append(rec.Roles, string(r))
	}
	var entry yaml.Node
	if err := entry.Encode(struct {
		Name        string   `yaml:"name"`
		Roles       []string `yaml:"roles,flow"`
		TokenSHA256 []string `yaml:"token_sha256"`
	}{rec.Name, rec.Roles, rec.TokenSHA256}); err != nil {
		return nil, fmt.Errorf("encode user: %w", err)
	}
	list.Content = append(list.Content, &entry)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return nil, fmt.Errorf("encode users file: %w", err)
	}
	return out.Bytes(), nil
}

// replace rewrites the file in one step. The temporary file has a fixed name and
// is created exclusively, which makes it the lock between two writers as well.
func replace(path string, edit func(old []byte) ([]byte, error)) (err error) {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: another program is changing the users file: try again, or remove %q if a crash left it", locksteward.ErrConflict, tmp)
	}
	if err != nil {
		return fmt.Errorf("write users file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(tmp))
		}
	}()
	old, err := readPrivate(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	updated, err := edit(old)
	if err != nil {
		return err
	}
	if _, err := f.Write(updated); err != nil {
		return fmt.Errorf("write users file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write users file: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write users file: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write users file: %w", err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
