package credfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
)

// Secret is a password in the first line of a file.
type Secret struct{ f file[locksteward.Secret] }

// OpenSecret reads a password. Nothing but the end of the line is cut off. A file
// that is empty at first is one without a password; later it is taken for one that
// is being written.
func OpenSecret(path string) (*Secret, error) {
	s := &Secret{f: file[locksteward.Secret]{paths: []string{path}}}
	s.f.read = func(raw [][]byte) (locksteward.Secret, error) {
		line, _, _ := strings.Cut(string(raw[0]), "\n")
		if line = strings.TrimRight(line, "\r"); line == "" && s.f.gen > 0 {
			return "", fmt.Errorf("read %q: its first line is empty", path)
		}
		return locksteward.Secret(line), nil
	}
	if err := s.f.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Secret returns the password in use.
func (s *Secret) Secret() locksteward.Secret { return s.f.get() }

// State looks at the file, at once if force is set.
func (s *Secret) State(force bool) State { return s.f.state(force) }

var pemBegin = []byte("-----BEGIN ")

// cutShort says that a PEM block begins in what is left behind the last whole one.
func cutShort(rest []byte) bool { return bytes.Contains(rest, pemBegin) }

// ErrNotBoth is a certificate without its key, or the other way round.
var ErrNotBoth = errors.New("write both, the certificate and its key, or none")
