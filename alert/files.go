package alert

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
)

// files are the opened files that one receiver's configuration names. Each is read again
// when it changes; a version that cannot be used leaves the one before in use. The zero
// value has none open. It is safe for concurrent use.
type files struct {
	mu   sync.Mutex
	list []openFile
}

// openFile is one of them, under its key below the receiver's kind.
type openFile struct {
	key   string
	value any // *credfile.Value[T] or *credfile.Pool
	state func(force bool) credfile.State
}

// valueOf returns what a file holds now, in the form that parse gives it, whose
// errors must not show a byte of it. The file is opened if it is not.
func valueOf[T any](fs *files, key, path string, parse func(text []byte) (T, error)) (T, error) {
	v, err := openOf(fs, key, func() (*credfile.Value[T], func(bool) credfile.State, error) {
		v, err := credfile.OpenValue(path, parse)
		return v, v.State, err
	})
	if err != nil {
		var none T
		return none, err
	}
	return v.Get(), nil
}

// pool returns the authorities of a file with those of the system.
func (fs *files) pool(key, path string) (*x509.CertPool, error) {
	p, err := openOf(fs, key, func() (*credfile.Pool, func(bool) credfile.State, error) {
		p, err := credfile.OpenMore(path)
		return p, p.State, err
	})
	if err != nil {
		return nil, err
	}
	return p.Pool(), nil
}

func openOf[V any](fs *files, key string, open func() (V, func(bool) credfile.State, error)) (V, error) {
	if v, ok := openedFile[V](fs, key); ok {
		return v, nil
	}
	v, state, err := open()
	if err != nil {
		return v, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.list {
		if first, is := f.value.(V); is && f.key == key {
			return first, nil // another call was quicker
		}
	}
	fs.list = append(fs.list, openFile{key, v, state})
	return v, nil
}

func openedFile[V any](fs *files, key string) (v V, ok bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.list {
		if v, ok = f.value.(V); ok && f.key == key {
			return v, true
		}
	}
	var none V
	return none, false
}

// states returns the states of the files, read now if force is set.
func (fs *files) states(force bool) []credfile.File {
	fs.mu.Lock()
	list := fs.list
	fs.mu.Unlock()
	out := make([]credfile.File, 0, len(list))
	for _, f := range list {
		out = append(out, credfile.File{Key: f.key, State: f.state(force)})
	}
	return out
}

// generation grows with each version of a file that comes into use.
func (fs *files) generation() uint64 { return generationOf(fs.states(false)) }

func generationOf(states []credfile.File) (sum uint64) {
	for _, f := range states {
		sum += f.Generation
	}
	return sum
}

// secret returns the secret in a file, without the blanks around it.
func (fs *files) secret(key, path string) (locksteward.Secret, error) {
	return valueOf(fs, key, path, func(text []byte) (locksteward.Secret, error) {
		return trimmed(locksteward.Secret(text)), nil
	})
}

// secretOr returns a secret that the configuration holds itself, or that of its file;
// "" if neither is given. Its error begins with the key.
func (fs *files) secretOr(held locksteward.Secret, key, path string) (locksteward.Secret, error) {
	if path == "" {
		return trimmed(held), nil
	}
	s, err := fs.secret(key, path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return s, nil
}

// trimmed is a secret without the blanks around it.
func trimmed(s locksteward.Secret) locksteward.Secret {
	return locksteward.Secret(strings.TrimSpace(s.Reveal()))
}

// given reports two places of one secret: neither is better than the other.
func given(held locksteward.Secret, key, file string) []error {
	if held == "" || file == "" {
		return nil
	}
	return []error{fmt.Errorf("%s_file: %q is given beside %s (%s): write one of them", key, file, key, held)}
}

// url returns the URL in a file.
func (fs *files) url(key, path string, allowPrivate bool) (*url.URL, error) {
	return valueOf(fs, key, path, func(text []byte) (*url.URL, error) {
		return parseURL(locksteward.Secret(strings.TrimSpace(string(text))), allowPrivate)
	})
}
