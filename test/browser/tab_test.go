package browser_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// within is how long an event may take on a loaded machine.
const within = 20 * time.Second

// tab is one person's browser.
type tab struct {
	t       *testing.T
	ctx     context.Context
	url     string // of the console, without a slash at its end
	within  time.Duration
	dialogs atomic.Int32
}

// newTab opens a tab with a profile of its own.
func newTab(t *testing.T, url string) *tab {
	t.Helper()
	b := &tab{t: t, url: strings.TrimSuffix(url, "/"), within: within}
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(func(ev any) {
		if _, ok := ev.(*page.EventJavascriptDialogOpening); ok {
			b.dialogs.Add(1)
		}
	}))
	t.Cleanup(cancel)
	b.ctx = ctx
	b.size(1280, 900, false)
	return b
}

// do runs steps that must work, each within the bound.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, b.within)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v; the page is\n%s", err, b.text())
	}
}

// visit loads a page of the console.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
}

// js evaluates an expression.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, b.within)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// await waits until an expression is true of a page that is loaded: before, its script
// may not listen yet. While a page changes there may be nobody to ask.
func (b *tab) await(expression string) {
	b.t.Helper()
	b.awaitFor(b.within, expression)
}

func (b *tab) awaitFor(bound time.Duration, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, bound)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	loaded := "document.readyState === 'complete' && (" + expression + ")"
	for {
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](loaded)); err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("never true: %s; the page is\n%s", expression, b.text())
		case <-tick.C:
		}
	}
}

// sees waits until the page shows a text.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.await("document.body.innerText.includes(" + quoted(text) + ")")
}

// text is what the page shows.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return out
}

// press clicks the button with this name as a mouse does.
func (b *tab) press(name string) {
	b.t.Helper()
	b.do(chromedp.Click(fmt.Sprintf(`//main//button[normalize-space(.)=%q]`, name)))
}

// follow clicks a link that has a text.
func (b *tab) follow(text string) {
	b.t.Helper()
	b.do(chromedp.Click(fmt.Sprintf(`(//main//a[contains(.,%q)])[1]`, text)))
}

// followKey clicks the link of a lock, or of what is about it.
func (b *tab) followKey(key string) {
	b.t.Helper()
	b.do(chromedp.Click(fmt.Sprintf(`(//main//a[.//code[normalize-space(.)=%q]])[1]`, key)))
}

// fill types into a field of the page.
func (b *tab) fill(name, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS("main [name="+name+"]"), text))
}

// size makes the window so large.
func (b *tab) size(width, height int64, phone bool) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// scheme is light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// noScript switches scripts off.
func (b *tab) noScript() {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		b.t.Fatal(err)
	}
}

// shot keeps a picture of the page as an artefact if the test is run for that: `go
// test -artifacts -outputdir DIR`.
func (b *tab) shot(name string) []byte {
	b.t.Helper()
	if f := flag.Lookup("test.artifacts"); f == nil || f.Value.String() != "true" {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.within)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), raw, 0o644); err != nil {
		b.t.Fatal(err)
	}
	return raw
}

// signIn goes in by the form, as people do.
func (b *tab) signIn(name, password string) {
	b.t.Helper()
	b.visit("/sign-in")
	b.fill("name", name)
	b.fill("password", password)
	b.press("Sign in")
	b.await("location.pathname === '/'")
}

// seesName waits until the page says who has signed in.
func (b *tab) seesName(name string) {
	b.t.Helper()
	b.await("document.querySelector('#me summary').textContent === " + quoted("signed in as "+name))
}

// signOut leaves by the menu with the person's name.
func (b *tab) signOut() {
	b.t.Helper()
	b.do(chromedp.Click("#me summary"), chromedp.Click(`//header//button[normalize-space(.)="Sign out"]`))
}

func quoted(text string) string {
	raw, _ := json.Marshal(text) // a string
	return string(raw)
}
