package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// key presses one key as a person does.
func (b *tab) key(name string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(name))
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
