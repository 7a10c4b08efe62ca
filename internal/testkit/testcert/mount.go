package testcert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Mounted is a directory of files as the kubelet mounts a secret: each is a link into
// ..data, which is a link to a directory that is replaced as a whole.
type Mounted struct {
	dir string
	n   int
}

// Mount makes one.
func Mount(t testing.TB, files map[string]string) *Mounted {
	t.Helper()
	m := &Mounted{dir: t.TempDir()}
	m.Swap(t, files)
	return m
}

// Path is where a file is, from the first swap on.
func (m *Mounted) Path(name string) string { return filepath.Join(m.dir, name) }

// Swap puts other files in place of those before, in one step.
func (m *Mounted) Swap(t testing.TB, files map[string]string) {
	t.Helper()
	m.n++
	link := m.Path("..data")
	was, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	version := "..version-" + strconv.Itoa(m.n)
	must(t, os.Mkdir(m.Path(version), 0o700))
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(m.Path(version), name), []byte(text), 0o600))
		if err := os.Symlink(filepath.Join("..data", name), m.Path(name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	must(t, os.Symlink(version, link+".next"))
	must(t, os.Rename(link+".next", link))
	if was != "" {
		must(t, os.RemoveAll(m.Path(was)))
	}
}
