package browsertest_test

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// maxPicture is how large a picture of the documentation may be, in bytes.
const maxPicture = 150 << 10

var pictures = []string{"overview", "overview-dark", "lock", "graph", "request", "phone"}

// The pictures of docs/img are there, and small. `make screenshots` takes them
// anew.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "img")
	if *screenshots {
		takeScreenshots(t, dir)
	}
	for _, name := range pictures {
		raw, err := os.ReadFile(filepath.Join(dir, name+".png"))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil || len(raw) > maxPicture {
			t.Errorf("%s: %d bytes, at most %d; %v", name, len(raw), maxPicture, err)
		}
	}
}

func takeScreenshots(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, scene)
	ana, bo := s.as("ana"), s.as("bo")
	take := func(b *tab, name string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(b.ctx, within)
		defer cancel()
		raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []*tab{ana, bo} {
		b.size(1180, 820, false)
		b.scheme("light")
	}
	ana.await("document.querySelectorAll('main article.card').length >= 5")
	path := s.ask(ana, "key=lock:order:41")
	bo.visit("/")
	bo.sees("Releases that wait for a decision")
	bo.sees("renewal/zombie")
	take(bo, "overview")
	bo.scheme("dark")
	take(bo, "overview-dark")
	bo.scheme("light")
	bo.visit("/graph")
	bo.sees("Deadlock:")
	bo.size(1180, 640, false)
	take(bo, "graph")
	bo.size(1180, 820, false)
	bo.visit(path)
	bo.sees("Then and now")
	bo.fill("reason", "the pod is gone, its work was rolled back")
	take(bo, "request")
	ana.visit("/locks/one?target=main&key=lock:order:42")
	ana.sees("Who waits for it")
	ana.size(1180, 980, false)
	take(ana, "lock")
	ana.size(390, 780, true)
	ana.visit("/")
	ana.sees("Releases that wait for a decision")
	take(ana, "phone")
}
