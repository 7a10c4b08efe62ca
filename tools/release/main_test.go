package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The same binary gives the same files, whatever the folders, times and modes on the
// disk are; a program for Windows comes as a zip.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pack := func(mode os.FileMode) map[string][]byte {
		root, out := t.TempDir(), t.TempDir()
		for name, text := range map[string]string{"LICENSE": "a licence\n", "completions/x.bash": "complete\n"} {
			file := filepath.Join(root, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), mode); err != nil {
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		args := []string{"-version", "v1.2.3", "-epoch", "1767323045", "-out", out, "-root", root, "linux/amd64=" + self, "windows/amd64=" + self}
		if err := run(args, &said); err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, e := range entries {
			if files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
		return files
	}
	first, second := pack(0o600), pack(0o644)
	if len(first) != 5 {
		t.Errorf("made %d files, want two archives, two bills and the sums", len(first))
	}
	for name, raw := range first {
		if !bytes.Equal(raw, second[name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	raw := first["locksteward_1.2.3_windows_amd64.zip"]
	zr, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if f := zr.File[2]; f.Name != "locksteward_1.2.3_windows_amd64/locksteward.exe" || f.Modified.Unix() != 1767323045 {
		t.Errorf("the zip has %s of %s", f.Name, f.Modified)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"-version", "v1", "-out", t.TempDir(), "-root", t.TempDir(), "linux=x"},
		{"-version", "v1", "-out", t.TempDir(), "-root", t.TempDir(), "linux/amd64=" + filepath.Join(t.TempDir(), "none")},
	} {
		if err := run(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
