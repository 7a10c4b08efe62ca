package deploytest

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dist runs scripts/dist.sh of a tree and returns the folder with what it made.
func dist(t *testing.T, tree string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.CommandContext(t.Context(), filepath.Join(tree, "scripts/dist.sh"), "linux/amd64")
	cmd.Env = append(os.Environ(), "DIST="+out, "VERSION=v1.2.3", "COMMIT=0123456789abcdef0123456789abcdef01234567",
		"DATE=2026-01-02T03:04:05+00:00", "SOURCE_DATE_EPOCH=1767323045")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("dist.sh: %v\n%s", err, said)
	}
	return out
}

// elsewhere copies what a build reads into another folder, with other times.
func elsewhere(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "data", "dist", "bench", "deploy/compose/secrets", "docs/img"}, filepath.ToSlash(rel)) || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if strings.HasSuffix(path, "_test.go") || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), raw, info.Mode())
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// Two builds of the same sources, in different folders, give the same bytes.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: builds the program twice")
	}
	first, second := dist(t, elsewhere(t)), dist(t, elsewhere(t))
	sums := string(must(t, filepath.Join(first, "SHA256SUMS")))
	if again := string(must(t, filepath.Join(second, "SHA256SUMS"))); sums != again {
		t.Errorf("two builds, two results:\n%s\n%s", sums, again)
	}
	var names []string
	for line := range strings.Lines(sums) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sum := sha256.Sum256(must(t, filepath.Join(first, name)))
		if hex.EncodeToString(sum[:]) != want {
			t.Errorf("SHA256SUMS is wrong about %s", name)
		}
		names = append(names, name)
	}
	if want := []string{
		"locksteward_1.2.3_linux_amd64.cdx.json", "locksteward_1.2.3_linux_amd64.tar.gz",
	}; !slices.Equal(names, want) {
		t.Errorf("made %v, want %v", names, want)
	}
	t.Run("archive", func(t *testing.T) { checkArchive(t, filepath.Join(first, names[1])) })
	t.Run("bill of materials", func(t *testing.T) { checkBill(t, filepath.Join(first, names[0])) })
}

// checkArchive unpacks an archive and runs what is in it.
func checkArchive(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var names []string
	for tr := tar.NewReader(zr); ; {
		head, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Uid != 0 || head.Uname != "" || head.ModTime.Unix() != 1767323045 {
			t.Errorf("%s belongs to %d %q, of %s", head.Name, head.Uid, head.Uname, head.ModTime)
		}
		raw, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(head.Name, "locksteward_1.2.3_linux_amd64/")
		names = append(names, name)
		if err := os.Chmod(put(t, dir, name, string(raw)), head.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"locksteward", "LICENSE", "config.example.yaml", "completions/locksteward.bash", "systemd/locksteward.service", "grafana/alerts.yaml", "grafana/locksteward.json"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %v", want, names)
		}
	}
	said, err := command(t, filepath.Join(dir, "locksteward"), "--version")
	if err != nil || !strings.Contains(said, "locksteward v1.2.3 (0123456789ab, ") {
		t.Errorf("the program says %s, %v", said, err)
	}
	program := must(t, filepath.Join(dir, "locksteward"))
	if here := absolute(t, root); strings.Contains(string(program), here+"/") || strings.Contains(string(program), os.TempDir()+"/Test") {
		t.Error("the program has paths of this machine in it")
	}
}

// checkBill compares a bill of materials with go.mod.
func checkBill(t *testing.T, file string) {
	var bill struct {
		BomFormat, SpecVersion, SerialNumber string
		Metadata                             struct {
			Component struct {
				Name, Version, Purl string
				Hashes              []struct{ Alg, Content string }
			}
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(must(t, file), &bill); err != nil {
		t.Fatal(err)
	}
	main := bill.Metadata.Component
	if bill.BomFormat != "CycloneDX" || bill.SpecVersion != "1.6" || main.Version != "v1.2.3" || len(main.Hashes) != 1 ||
		main.Purl != "pkg:golang/github.com/locksteward/locksteward@v1.2.3?goos=linux&goarch=amd64" {
		t.Errorf("bill %+v", bill)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/locksteward")
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	slices.Sort(want)
	want = slices.Compact(want)
	var got []string
	for _, c := range bill.Components {
		if c.Name != "std" {
			got = append(got, c.Name+"@"+c.Version)
		}
		if !strings.HasPrefix(c.Purl, "pkg:golang/"+c.Name+"@") {
			t.Errorf("%s has the URL %s", c.Name, c.Purl)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the bill lists\n%v\nand the build is made of\n%v", got, want)
	}
}
