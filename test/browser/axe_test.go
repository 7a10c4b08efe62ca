package browser_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe-core (MPL-2.0) checks pages in these tests and is part of nothing that is shipped. npm fetches it, or has it in its cache.
const (
	axePackage = "axe-core@4.14.1"
	axeSHA512  = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
	axeScript  = "package/axe.min.js"
)

var axe = sync.OnceValues(fetchAxe)

func fetchAxe() (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("no npm is on PATH, to fetch " + axePackage)
	}
	dir, err := os.MkdirTemp("", "axe")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	cmd := exec.Command(npm, "pack", "--prefer-offline", "--silent", axePackage)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm pack %s: %w: %s", axePackage, err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("npm pack %s made %d files: %w", axePackage, len(files), err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(raw); base64.StdEncoding.EncodeToString(sum[:]) != axeSHA512 {
		return "", fmt.Errorf("%s is another file than the one that was reviewed: sha512 %s", axePackage, base64.StdEncoding.EncodeToString(sum[:]))
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	for archive := tar.NewReader(unzipped); ; {
		head, err := archive.Next()
		if err != nil {
			return "", fmt.Errorf("%s in %s: %w", axeScript, axePackage, err)
		}
		if head.Name == axeScript {
			script, err := io.ReadAll(archive)
			return string(script), err
		}
	}
}

// What axe-core looks for: WCAG 2.2 AA and its own advice; in the dark nothing but colours is another.
const (
	axeAll     = `{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}`
	axeColours = `{type: "rule", values: ["color-contrast", "link-in-text-block"]}`
)

// checkAxe says what is wrong with the page, as axe-core sees it.
func checkAxe(b *tab, name, only string) {
	b.t.Helper()
	script, err := axe()
	if err != nil {
		// npm and its registry are no part of what scripts/deps.sh installs.
		b.t.Log("NOT CHECKED by axe-core: ", err)
		return
	}
	// The debugger may run what the page's own policy forbids.
	b.do(chromedp.Evaluate[chromedp.Void]("window.axe || (() => {" + script + "})(), undefined"))
	b.do(chromedp.Evaluate[chromedp.Void](`window.wrong = null; axe.run(document, {resultTypes: ["violations"], runOnly: ` + only + `})
		.then((r) => { window.wrong = r.violations.map((v) => v.id + " (" + v.help + "): " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + n.failureSummary.replace(/\s+/g, " ").slice(0, 200)).join(" | ")); }, (e) => { window.wrong = ["axe: " + e]; }), undefined`))
	b.await("window.wrong !== null")
	if wrong := js[[]string](b, "window.wrong"); len(wrong) > 0 {
		b.t.Errorf("%s: %s", name, strings.Join(wrong, "\n\t"))
	}
}

// A page with nothing wrong passes because axe-core looked, and not because it was silent.
func TestAxeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	if _, err := axe(); err != nil && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: ", err)
	}
	s := newStage(t, nil)
	b := s.as("vi")
	b.visit("/locks")
	b.do(chromedp.Evaluate[chromedp.Void]("document.body.append(document.createElement('button')), undefined"))
	script, err := axe()
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Evaluate[chromedp.Void]("(() => {" + script + "})(), undefined"))
	b.do(chromedp.Evaluate[chromedp.Void](`axe.run(document).then((r) => { window.wrong = r.violations.map((v) => v.id).join(); }), undefined`))
	b.await("typeof window.wrong === 'string' && window.wrong.includes('button-name')")
}
