// Package browser_test uses the console as people do: a real agent on a real
// Redis, seen through headless Chromium.
package browser_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// screenshots rewrites the pictures of docs/img.
var screenshots = flag.Bool("screenshots", false, "rewrite the pictures of docs/img")

// chromium is the one browser of the package; each test has profiles of its own.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop context.CancelFunc
	err  error
}

func TestMain(m *testing.M) {
	if is, code := testagent.Child(); is {
		os.Exit(code)
	}
	goleak.VerifyTestMain(browsing{testredis.Settled{M: m}})
}

// browsing ends the browser before leaks are looked for.
type browsing struct{ tests testredis.Settled }

func (b browsing) Run() int {
	code := b.tests.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	return code
}

// names are what a Chromium is called.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

func browser(t *testing.T) context.Context {
	t.Helper()
	chromium.once.Do(start)
	if chromium.err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(chromium.err)
		}
		t.Skip("SKIPPED: ", chromium.err)
	}
	return chromium.ctx
}

func start() {
	path := ""
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		chromium.err = fmt.Errorf("no Chromium is on PATH (%v): make deps installs it", names)
		return
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("lang", "en-US"))
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, stopBrowser := chromedp.NewContext(allocator)
	chromium.stop = func() {
		stopBrowser()
		stopAllocator()
	}
	chromium.ctx = ctx
	chromium.err = chromedp.Do(ctx)
}
