package browser_test

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

var pictures = []string{"overview", "overview-dark", "lock", "graph", "request", "phone", "targets"}

// The pictures of docs/img are there, and small. `make screenshots` takes them
// anew.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "img")
	if *screenshots {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Run("incident", func(t *testing.T) { takeIncident(t, dir) })
		t.Run("replicas", func(t *testing.T) { takeReplicas(t, dir) })
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

// take writes what the window shows.
func (b *tab) take(dir, name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, b.within)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), raw, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func takeIncident(t *testing.T, dir string) {
	t.Helper()
	s := newStage(t, scene)
	ana, bo := s.as("ana"), s.as("bo")
	for _, b := range []*tab{ana, bo} {
		b.within = fleetWithin
		b.size(1180, 820, false)
		b.scheme("light")
	}
	ana.await("document.querySelectorAll('main article.card').length >= 4")
	path := s.ask(ana, "key=lock:order:41")
	bo.visit("/")
	bo.sees("Releases that wait for a decision")
	bo.sees("renewal/zombie")
	bo.take(dir, "overview")
	bo.scheme("dark")
	bo.take(dir, "overview-dark")
	bo.scheme("light")
	bo.visit("/graph")
	bo.sees("Deadlock:")
	bo.size(1180, 640, false)
	bo.take(dir, "graph")
	bo.size(1180, 820, false)
	bo.visit(path)
	bo.sees("Then and now")
	bo.fill("reason", "the pod is gone, its work was rolled back")
	bo.take(dir, "request")
	ana.visit("/locks/one?target=main&key=lock:order:42")
	ana.sees("Waiters")
	ana.size(1180, 800, false)
	ana.take(dir, "lock")
	ana.size(390, 780, true)
	ana.visit("/")
	ana.sees("Releases that wait for a decision")
	ana.take(dir, "phone")
}

// takeReplicas shows who works on which target.
func takeReplicas(t *testing.T, dir string) {
	t.Helper()
	f := newFleet(t)
	f.set("stock", "lock:order:42", token)
	bo := f.as("bo", f.replicas[0])
	bo.size(1180, 700, false)
	bo.scheme("light")
	bo.visit("/targets")
	bo.await("document.querySelectorAll('main article.card.good').length === 2 && [...document.querySelectorAll('main dt')].filter(e => e.textContent === 'Replica').length === 2 && document.querySelector('main').innerText.includes('1 key, 1 lock') && !document.querySelector('main').innerText.includes('under way')")
	bo.take(dir, "targets")
}
