package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// ask requests the release of a lock as a person and returns the path of the
// request.
func (s *stage) ask(b *tab, query string) string {
	s.t.Helper()
	b.visit("/locks/one?target=main&" + query)
	b.sees("Request the release")
	b.fill("reason", "its holder is gone, INC-7")
	b.press("Request the release")
	b.await("location.pathname.startsWith('/requests/r-')")
	return js[string](b, "location.pathname")
}

// All that can be done can be done without any script.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	const key, other = "lock:order:42", "lock:order:43"
	s := newStage(t, func(s *stage) { s.set(key, token); s.set(other, token+"x") })
	ana, bo, kim := newTab(t, s.url), newTab(t, s.url), newTab(t, s.url)
	for name, b := range map[string]*tab{"ana": ana, "bo": bo, "kim": kim} {
		b.noScript()
		b.signIn(name, s.tokens[name].Reveal())
	}
	path := s.ask(ana, "key="+key)
	bo.visit(path)
	if js[bool](bo, "!document.getElementById('live').hidden") {
		t.Error("the page says that it is live")
	}
	bo.fill("reason", "checked")
	bo.press("Approve")
	bo.sees("Released")
	if s.held(key) {
		t.Error("the lock stands")
	}
	bo.fill("reason", "it was not dead after all")
	bo.press("Undo")
	bo.sees("undo of")
	if !s.held(key) {
		t.Error("the undo put nothing back")
	}
	bo.visit(s.ask(ana, "key="+other))
	bo.fill("reason", "it works, leave it")
	bo.press("Deny")
	bo.sees("Denied by bo")
	if !s.held(other) {
		t.Error("a denied release deleted the lock")
	}
	kim.visit("/release-pause")
	kim.do(chromedp.SendKeys(`(//main//textarea)[1]`, "drill"), chromedp.Click(`//button[contains(.,"Pause all releases")]`))
	kim.sees("kim paused them")
	kim.visit("/")
	kim.sees("All releases are paused")
	kim.visit("/targets")
	kim.press("Pause main")
	kim.sees("paused by kim")
	kim.press("Resume main")
	kim.await("!document.body.innerText.includes('paused by kim')")
	ana.visit("/?refresh=5")
	if js[int](ana, "document.querySelectorAll('meta[http-equiv=refresh]').length") != 1 {
		t.Error("the page does not load itself again")
	}
}

// A release is approved with the keyboard alone.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	s := newStage(t, func(s *stage) { s.set(key, token) })
	path := s.ask(s.as("ana"), "key="+key)
	bo := s.as("bo")
	bo.within = 3 * within
	bo.visit(path)
	bo.await("document.hasFocus() && document.getElementById('live').textContent === 'live'")
	// press presses Tab and waits until the focus has moved.
	press := func() {
		t.Helper()
		bo.do(chromedp.Evaluate[chromedp.Void]("window.before = document.activeElement"), chromedp.KeyEvent(kb.Tab))
		bo.await("document.activeElement !== window.before")
	}
	press()
	if text := js[string](bo, "document.activeElement.textContent"); text != "Skip to content" {
		t.Errorf("the first thing is %q, not the way to the content", text)
	}
	bo.do(chromedp.KeyEvent(kb.Enter))
	bo.await("document.activeElement.id === 'main'")
	tab := func(to string) {
		t.Helper()
		for range 60 {
			press()
			if js[bool](bo, "document.activeElement.matches('main *') && getComputedStyle(document.activeElement).outlineStyle === 'none'") {
				t.Errorf("%s has no visible focus", js[string](bo, "document.activeElement.outerHTML"))
			}
			if js[bool](bo, to) {
				return
			}
		}
		t.Fatalf("never reached: %s", to)
	}
	tab("document.activeElement.name === 'reason'")
	bo.do(chromedp.KeyEvent("the pod is gone"))
	tab("document.activeElement.textContent.trim() === 'Approve'")
	bo.do(chromedp.KeyEvent(kb.Enter))
	bo.sees("Released")
	if s.held(key) {
		t.Error("the lock stands")
	}
}

// A name that wants to be markup, a dialog, another line and another direction is
// a name on every page, and its lock can be released.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	const key = "lock:order:\"'><script>alert(1);window.pwned=1</script>\n\u202eevil\x00\xff<img src=x onerror=alert(2)>{{.}}javascript:alert(3)"
	s := newStage(t, func(s *stage) { s.set(key, token) })
	ana, bo := s.as("ana"), s.as("bo")
	ana.await("document.querySelectorAll('main article.card').length >= 1")
	paths := everyPage(ana)
	ana.visit("/locks")
	ana.do(chromedp.Click("(//main//td//a)[1]"))
	ana.sees("Request the release")
	ana.fill("reason", "<script>alert(4)</script><b>\u202ebold</b> its holder is gone")
	ana.press("Dry run")
	ana.sees("Exactly this hold would be ended")
	ana.press("Request the release")
	ana.await("location.pathname.startsWith('/requests/r-')")
	paths["request"] = js[string](ana, "location.pathname")
	for _, path := range paths {
		bo.visit(path)
		if n := js[int](bo, "document.querySelectorAll('script').length * 100 + document.querySelectorAll('img, b > i, main script, iframe, object, embed, [onerror], [onclick], [style]').length"); n != 100 {
			t.Errorf("%s: %d", path, n)
		}
		if strings.ContainsAny(js[string](bo, "document.documentElement.outerHTML"), "\u202e\x00") {
			t.Errorf("%s has characters that turn or end text", path)
		}
		if js[bool](bo, "window.pwned !== undefined") {
			t.Errorf("%s ran what a name says", path)
		}
	}
	bo.visit(paths["request"])
	bo.fill("reason", "checked")
	bo.press("Approve")
	bo.sees("Released")
	if s.held(key) {
		t.Error("the lock stands")
	}
	if ana.dialogs.Load()+bo.dialogs.Load() > 0 {
		t.Error("a name opened a dialog")
	}
}

// A page of another site that sends the form of an approval with the person's own
// cookie changes nothing, nor does a form without its token.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	s := newStage(t, func(s *stage) { s.set(key, token) })
	path := s.ask(s.as("ana"), "key="+key)
	bo := s.as("bo")
	bo.visit(path)
	hash := js[string](bo, "document.querySelector('[name=evidence_hash]').value")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<form method="post" action="` + bo.url + path + `/approve"><input name="reason" value="x"><input name="evidence_hash" value="` + hash +
			`"><button id="go">Win a prize</button></form>`))
	}))
	t.Cleanup(evil.Close)
	for _, url := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} { // the same site, and another one
		bo.do(chromedp.Navigate(url), chromedp.Click("#go"))
		bo.sees("Forbidden")
		bo.sees("comes from another web site")
	}
	bo.visit(path)
	send := func(body string) int {
		t.Helper()
		return js[int](bo, `(() => { const x = new XMLHttpRequest(); x.open("POST", "`+path+`/approve", false); x.setRequestHeader("Content-Type", "application/x-www-form-urlencoded"); x.send("`+body+`"); return x.status; })()`)
	}
	for _, body := range []string{"reason=x&evidence_hash=" + hash, "reason=x&csrf=forged&evidence_hash=" + hash} {
		if status := send(body); status != http.StatusForbidden {
			t.Errorf("a form without its token: status %d", status)
		}
	}
	bo.visit(path)
	bo.sees("waits for a decision")
	if !s.held(key) {
		t.Error("the lock is gone")
	}
}

// A form that is sent twice is a conflict the second time, and changes nothing.
func TestReplayedForms(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	s := newStage(t, func(s *stage) { s.set(key, token) })
	ana, bo := s.as("ana"), s.as("bo")
	// replay sends the page's form by hand, twice, and returns both answers.
	replay := func(b *tab, form, extra string) []float64 {
		return js[[]float64](b, `(() => { const f = document.querySelector("`+form+`"), d = new URLSearchParams(new FormData(f)); d.set("reason", "twice"); `+extra+`
			return [1, 2].map(() => { const x = new XMLHttpRequest(); x.open("POST", f.getAttribute("action"), false); x.send(d); return x.status; }); })()`)
	}
	ana.visit("/locks/one?target=main&key=" + key)
	ana.sees("Request the release")
	if got := replay(ana, "form.ask", `d.set("do", "request");`); got[0] != 200 || got[1] != 409 { // 200: of the page that it leads to
		t.Errorf("requests: %v", got)
	}
	bo.visit("/")
	bo.followKey(key)
	bo.sees("Then and now")
	path := js[string](bo, "location.pathname")
	if got := replay(bo, "form.decide", ""); got[0] != 200 || got[1] != 409 {
		t.Errorf("approvals: %v", got)
	}
	if s.held(key) {
		t.Error("the lock stands")
	}
	bo.visit(path)
	if got := replay(bo, "form.decide", ""); got[0] != 200 || got[1] != 409 {
		t.Errorf("undos: %v", got)
	}
	if !s.held(key) {
		t.Error("the undo put nothing back")
	}
}

// What somebody types stays while the page follows what happens.
func TestTypingSurvivesChanges(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	s := newStage(t, func(s *stage) { s.set(key, token) })
	ana := s.as("ana")
	ana.visit("/locks/one?target=main&key=" + key)
	ana.sees("Request the release")
	ana.await("document.getElementById('live').textContent === 'live'")
	ana.fill("reason", "half a sent")
	ana.do(chromedp.Click("#facts summary"), chromedp.Click("#options summary"), chromedp.Click(`//main//input[@name="holder_alive"]`), chromedp.Click(`//main//textarea[@name="reason"]`))
	ana.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#verdicts').open = true; document.querySelector('main textarea').setSelectionRange(4, 6)"))
	const digest = "[...document.querySelectorAll('main .facts div')].find(e => e.innerText.startsWith('Token')).innerText"
	seen := js[string](ana, digest)
	s.set(key, token+"x") // another hold
	ana.await(digest + " !== " + quoted(seen))
	for what, is := range map[string]string{
		"the text":      "document.querySelector('main textarea').value === 'half a sent'",
		"the focus":     "document.activeElement.name === 'reason'",
		"the selection": "document.activeElement.selectionStart === 4 && document.activeElement.selectionEnd === 6",
		"the tick":      "document.querySelector('main [name=holder_alive]').checked",
		"the details":   "document.querySelector('#verdicts').open",
	} {
		if !js[bool](ana, is) {
			t.Errorf("%s is lost", what)
		}
	}
}

// A page that cannot be made anew stays as it was, with what somebody types there,
// says why, and goes on when it can be made again.
func TestPageThatCannotBeMade(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	s := newStage(t, func(s *stage) { s.set(key, token) })
	ana := s.as("ana")
	ana.within = 2 * within // the server must be missed first
	ana.visit("/locks/one?target=main&key=" + key)
	ana.sees("Request the release")
	ana.fill("reason", "half a sent")
	s.srv.Pause()
	ana.sees("This page is as it was: it could not be made anew.")
	ana.sees("target main could not be read")
	ana.shot("stays")
	for what, is := range map[string]string{
		"the lock":       "document.querySelector('main h1').innerText.includes('lock:order:42') && document.body.innerText.includes('no TTL')",
		"the text":       "document.querySelector('main textarea').value === 'half a sent'",
		"one note alone": "document.querySelectorAll('main [role=alert]').length === 1",
	} {
		if !js[bool](ana, is) {
			t.Errorf("%s: not so on\n%s", what, ana.text())
		}
	}
	s.srv.Resume()
	ana.await("!document.getElementById('stays')")
	if text := js[string](ana, "document.querySelector('main textarea').value"); text != "half a sent" {
		t.Errorf("what was typed is %q now", text)
	}
}
