package browser_test

import (
	"testing"
	"unicode"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// key presses one key as a person does: what the page takes as a command is not typed as well.
func (b *tab) key(name string) {
	b.t.Helper()
	if r := []rune(name); len(r) != 1 || !unicode.IsPrint(r[0]) {
		b.do(chromedp.KeyEvent(name))
		return
	}
	for _, press := range []input.DispatchKeyEventParams{
		{Type: input.DispatchKeyEventTypeKeyDown, Key: name, Text: name, UnmodifiedText: name},
		{Type: input.DispatchKeyEventTypeKeyUp, Key: name},
	} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, press); err != nil {
			b.t.Fatal(err)
		}
	}
}

// The pages that are not in the first line are under More, which opens without script and by the keyboard, and closes by Escape and
// by a click elsewhere. On a phone all of it is one line.
func TestMenus(t *testing.T) {
	t.Parallel()
	s := newStage(t, scene)
	b := s.as("vi")
	const open = "document.getElementById('more').open"
	b.do(chromedp.Click("#more summary"))
	b.await(open)
	b.sees("stop releases for a while")
	b.key(kb.Escape)
	b.await("!" + open + " && document.activeElement.matches('#more summary')")
	b.key(kb.Enter)
	b.await(open)
	b.do(chromedp.Click("main h1"))
	b.await("!" + open)
	b.do(chromedp.Click("#more summary"), chromedp.Click(`//nav[@id="pages"]//a[starts-with(.,"Targets")]`))
	b.await("location.pathname === '/targets' && document.querySelector('#more.current') !== null")
	b.visit("/findings")
	b.await("document.querySelector('.count.critical') !== null")
	for _, width := range []int64{390, 320} {
		b.size(width, 844, true)
		b.await("innerWidth === " + itoa(width)) // a page that is wider makes the window of a phone wider
		if n := js[int](b, "new Set([...document.querySelectorAll('#pages > ul > li')].filter((e) => e.offsetParent).map((e) => Math.round(e.getBoundingClientRect().top))).size"); n != 1 {
			t.Errorf("%d wide: the navigation has %d lines\n%s", width, n, b.text())
		}
		b.do(chromedp.Click("#more summary"))
		b.await(open)
		if over := js[string](b, tooWide); over != "" {
			t.Errorf("%d wide: %s is cut off under More", width, over)
		}
		b.key(kb.Escape)
		b.await("!" + open)
	}
	plain := newTab(t, s.url)
	plain.noScript()
	plain.signIn("vi", s.tokens["vi"].Reveal())
	plain.do(chromedp.Click("#more summary"), chromedp.Click(`//nav[@id="pages"]//a[starts-with(.,"Rules")]`))
	plain.await("location.pathname === '/rules'")
}

// A request is decided with a and d, which ask with the page's own form before anything happens; lists are walked with j and k; a lock is
// found from every page by /. Each of these keys does nothing while somebody types, and nothing at all once they are switched off.
func TestSingleKeys(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	s := newStage(t, func(s *stage) { s.set(key, token); s.set("lock:order:43", token+"x") })
	path, other := s.ask(s.as("ana"), "key="+key), s.ask(s.as("ana"), "key=lock:order:43")
	bo := s.as("bo")
	bo.visit(path)
	bo.sees("Then and now")
	bo.key("a")
	bo.await("document.querySelector('dialog[open] h2').textContent === 'Approve this release?' && document.activeElement.matches('dialog [name=reason]')")
	if shown := js[string](bo, "[...document.querySelectorAll('dialog button')].filter((e) => e.offsetParent).map((e) => e.textContent).join()"); shown != "Approve,Close" {
		t.Errorf("the question offers %s", shown)
	}
	bo.do(chromedp.KeyEvent("a deadlock, said ana"))
	bo.key(kb.Escape)
	bo.await("!document.querySelector('dialog') && document.querySelector('main form.decide textarea').value === 'a deadlock, said ana'")
	if !s.held(key) {
		t.Fatal("a question that was not answered released the lock")
	}
	bo.do(chromedp.Click("main h1 .act"))
	bo.key("a")
	bo.await("document.activeElement.matches('dialog [name=reason]')")
	bo.do(chromedp.Click(`//dialog//button[normalize-space(.)="Approve"]`))
	bo.sees("Released")
	if s.held(key) {
		t.Error("the lock stands")
	}
	bo.visit(other)
	bo.sees("Then and now")
	bo.key("d")
	bo.await("document.querySelector('dialog[open] h2').textContent === 'Deny this release?'")
	bo.do(chromedp.KeyEvent("it works"), chromedp.Click(`//dialog//button[normalize-space(.)="Deny"]`))
	bo.sees("Denied by bo")

	bo.visit("/requests")
	bo.await("document.querySelectorAll('main tbody tr').length === 2")
	const at = "[...document.querySelectorAll('main tbody tr')].findIndex((e) => e.contains(document.activeElement))"
	for _, step := range []struct {
		key string
		row int64
	}{{"j", 0}, {"j", 1}, {"j", 1}, {"k", 0}} {
		bo.key(step.key)
		bo.await(at + " === " + itoa(step.row))
	}
	bo.key("/")
	bo.await("document.activeElement.id === 'find'")
	bo.do(chromedp.KeyEvent("order:43j/?"))
	bo.await("document.activeElement.value === 'order:43j/?' && !document.querySelector('dialog')")
	bo.do(chromedp.SetValue("#find", "order:43"))
	bo.key(kb.Enter)
	bo.await("location.pathname === '/locks' && document.querySelectorAll('main tbody tr').length === 1")

	bo.key("?")
	bo.do(chromedp.Click("dialog #single-keys"))
	bo.key(kb.Escape)
	bo.await("!document.querySelector('dialog')")
	bo.visit("/requests")
	bo.await("document.querySelectorAll('main tbody tr').length === 2")
	for _, name := range []string{"/", "j", "?"} {
		bo.key(name)
		if js[bool](bo, "document.querySelector('dialog') !== null || document.activeElement !== document.body") {
			t.Errorf("%s does something though single keys are off", name)
		}
	}
	bo.do(chromedp.Click("#keys")) // and back on, with the mouse
	bo.do(chromedp.Click("dialog #single-keys"), chromedp.Click(`//dialog//button[normalize-space(.)="Close"]`))
	bo.await("!document.querySelector('dialog')")
	bo.key("/")
	bo.await("document.activeElement.id === 'find'")
}

// Times are in the viewer's zone with UTC behind them, and go on; a long name is copied by a click.
func TestTimesAndNames(t *testing.T) {
	t.Parallel()
	s := newStage(t, scene)
	b := newTab(t, s.url)
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Shanghai"}); err != nil {
		t.Fatal(err)
	}
	b.signIn("vi", s.tokens["vi"].Reveal())
	b.visit("/locks/one?target=main&key=lock:order:42")
	b.await("document.querySelector('#asof time').textContent.endsWith('GMT+8') && document.querySelector('#asof time').title.endsWith(' UTC')")
	if off := js[float64](b, "(() => { const e = document.querySelector('#asof time'); return (Date.parse(e.textContent.slice(0, 19).replace(' ', 'T') + '+08:00') - Date.parse(e.title.slice(0, 19).replace(' ', 'T') + 'Z')) / 1000 })()"); off != 0 {
		t.Errorf("the time of the viewer and that of the tooltip are %.0f s apart", off)
	}
	const age = "document.querySelector('#holder time.age').textContent"
	b.await(age + " !== ''")
	b.do(chromedp.Evaluate[chromedp.Void]("window.seen = [" + age + "]; document.getElementById('main').dataset.live = 'off'"))
	b.await("(window.seen.includes(" + age + ") || window.seen.push(" + age + "), window.seen.length >= 3)")
	b.await("document.querySelector('#holder .copy') !== null")
	b.do(chromedp.Evaluate[chromedp.Void]("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})"))
	b.do(chromedp.Click("#holder .copy"))
	b.await("window.copied === document.querySelector('#holder .copy').dataset.copy && window.copied.length > 20 && document.querySelector('#holder .copy').title.startsWith(window.copied)")
}
