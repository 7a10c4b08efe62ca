package users

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
)

// SetDisabled disables or enables a user of the file at path and returns whether
// that changed anything. An unknown name is an error that wraps
// locksteward.ErrNotFound. A running agent takes it at its next reload.
func SetDisabled(path, name string, disabled bool) (bool, error) {
	var changed bool
	err := edit(path, name, func(a Account, entry *yaml.Node) error {
		changed = a.Disabled != disabled
		remove(entry, "disabled")
		if disabled {
			put(entry, "disabled", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("change user %q: %w", name, err)
	}
	return changed, nil
}

// SetPassword gives a user of the file at path a password in place of what they
// had; their API tokens stay. An unknown name is an error that wraps
// locksteward.ErrNotFound, a password of a bad length locksteward.ErrInvalid.
func SetPassword(path, name string, password locksteward.Secret) error {
	written, err := HashPassword(password)
	if err == nil {
		err = edit(path, name, func(_ Account, entry *yaml.Node) error {
			remove(entry, "password_hash")
			put(entry, "password_hash", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.SingleQuotedStyle, Value: written.Reveal()})
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("set password of %q: %w", name, err)
	}
	return nil
}

// edit changes the entry of one user.
func edit(path, name string, fn func(a Account, entry *yaml.Node) error) error {
	return change(path, func(set *Set, list *yaml.Node) error {
		i := slices.IndexFunc(set.Accounts(), func(a Account) bool { return a.Name == name })
		if i < 0 {
			return fmt.Errorf("%w: no user of %q has this name: `locksteward users list` shows them", locksteward.ErrNotFound, path)
		}
		entry := list.Content[i]
		if entry.Kind == yaml.AliasNode {
			entry = entry.Alias
		}
		return fn(set.Accounts()[i], entry)
	})
}

func remove(entry *yaml.Node, key string) {
	for i := 0; i+1 < len(entry.Content); i += 2 {
		if entry.Content[i].Value == key {
			entry.Content = slices.Delete(entry.Content, i, i+2)
			return
		}
	}
}

func put(entry *yaml.Node, key string, value *yaml.Node) {
	entry.Content = append(entry.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

// change rewrites the file with the list of users changed by fn, which gets what
// the file says as well. It edits the YAML tree, not the text, so that comments
// stay.
func change(path string, fn func(set *Set, list *yaml.Node) error) error {
	return replace(path, func(old []byte) ([]byte, error) {
		set, err := parse(path, old)
		if err != nil {
			return nil, err
		}
		doc, list, err := listOf(old)
		if err != nil {
			return nil, err
		}
		if err := fn(set, list); err != nil {
			return nil, err
		}
		var out bytes.Buffer
		enc := yaml.NewEncoder(&out)
		enc.SetIndent(2)
		if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
			return nil, fmt.Errorf("encode users file: %w", err)
		}
		// What is about to be written must load: a file that cannot be read
		// would lock everybody out at the next reload.
		if _, err := parse(path, out.Bytes()); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	})
}

// listOf returns the document and the list of users in it, which is made where
// there is none.
func listOf(old []byte) (*yaml.Node, *yaml.Node, error) {
	doc := &yaml.Node{}
	if err := yaml.Unmarshal(old, doc); err != nil {
		return nil, nil, fmt.Errorf("parse users file: %w", err)
	}
	if doc.Kind == 0 || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		// An empty file, or one of comments alone.
		doc = &yaml.Node{Kind: yaml.DocumentNode, HeadComment: doc.HeadComment, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
		if len(bytes.TrimSpace(old)) == 0 {
			doc.HeadComment = "# Users of the Locksteward console and API. Written by `locksteward users add`.\n# It holds digests of tokens and passwords, never one of them."
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
	return doc, list, nil
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
