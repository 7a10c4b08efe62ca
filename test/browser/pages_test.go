package browser_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
)

// Every page fits a phone, in light and in dark, has names for anyone who hears it,
// stays small, and makes no noise.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	s := newStage(t, scene)
	kim := s.as("kim")
	kim.sees("lock:invoice:2026-118")
	kim.await("document.querySelectorAll('main article.card').length >= 2")
	ana := s.as("ana")
	ana.visit("/locks/one?target=main&key=lock:order:41")
	ana.sees("Request the release")
	ana.fill("reason", "its process ended at noon, INC-7")
	ana.press("Request the release")
	ana.await("location.pathname.startsWith('/requests/r-')")
	pages := everyPage(kim)
	pages["request"] = js[string](ana, "location.pathname")
	own := map[string]string{}
	for name, path := range pages {
		if strings.HasPrefix(name, "lock") {
			own[name] = path
			delete(pages, name)
		}
	}
	checkPages(t, kim, pages)
	checkPages(t, ana, own)
	if kim.dialogs.Load()+ana.dialogs.Load() > 0 {
		t.Error("a page opened a dialog")
	}
}

// checkPages looks at pages, by name, in every width and colour scheme.
func checkPages(t *testing.T, b *tab, pages map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		path := pages[name]
		b.size(1280, 900, false)
		b.scheme("light")
		b.visit(path)
		b.shot(name)
		if size := js[int](b, "new Blob([document.documentElement.outerHTML]).size"); size > 100<<10 {
			t.Errorf("%s: %d bytes", path, size)
		}
		if n := js[int](b, "document.querySelectorAll('h1').length"); n != 1 {
			t.Errorf("%s: %d headings of the first order", path, n)
		}
		if ids := js[string](b, "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i).join()"); ids != "" {
			t.Errorf("%s: the id %s stands twice", path, ids)
		}
		checkNames(b, path)
		checkAxe(b, path, axeAll)
		for _, width := range []int64{1000, 780, 390, 320} { // the last is the least that a phone has
			b.size(width, 844, width < 400)
			b.await(fmt.Sprint("innerWidth === ", width))
			if over := js[string](b, tooWide); over != "" {
				t.Errorf("%s, %d wide: %s is cut off or scrolls sideways", path, width, over)
			}
			if width == 390 {
				b.shot(name + "-phone")
			}
		}
		b.size(1280, 900, false)
		b.scheme("dark")
		if light := js[string](b, "getComputedStyle(document.body).backgroundColor"); !strings.HasPrefix(light, "rgb(1") {
			t.Errorf("%s: the background in the dark is %s", path, light)
		}
		checkAxe(b, path+" in the dark", axeColours)
		b.shot(name + "-dark")
		b.size(390, 844, true)
		b.shot(name + "-phone-dark")
	}
}

// What is known of a lock and the form that requests its release are on its first screen, on a phone, too, and on the screen of whoever
// may only read, too.
func TestFirstScreenOfALock(t *testing.T) {
	t.Parallel()
	s := newStage(t, scene)
	ana, vi := s.as("ana"), s.as("vi")
	const path = "/locks/one?target=main&key=lock:order:42"
	ana.visit(path)
	ana.await("document.querySelectorAll('#holder ul.plain li').length === 3")
	vi.visit(path)
	for _, size := range [][2]int64{{1280, 900}, {390, 844}} {
		for b, last := range map[*tab]string{ana: "main button[value=request]", vi: "#release .notice"} {
			b.size(size[0], size[1], size[0] < 400)
			b.await(fmt.Sprint("innerWidth === ", size[0]))
			for _, what := range []string{"main h1", "#holder .facts", "#holder .timeline", last} {
				if end := js[float64](b, "document.querySelector("+quoted(what)+").getBoundingClientRect().bottom + scrollY"); end > float64(size[1]) {
					t.Errorf("%d wide: %s ends at %.0f, below the first screen", size[0], what, end)
				}
			}
		}
	}
}

// tooWide is what of the page is wider than the window; "" if nothing is.
const tooWide = `(() => {
	if (document.documentElement.scrollWidth <= innerWidth) return "";
	const wide = [...document.querySelectorAll("main *, header *, footer *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".canvas, pre, .vh, thead, svg"));
	return (wide.map((e) => e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40)).slice(-3).join(" | ")) || "something";
})()`

// spoken are the roles that need a name.
var spoken = []string{"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "image", "navigation", "table", "form", "search"}

func checkNames(b *tab, path string) {
	b.t.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		b.t.Fatal(err)
	}
	seen := 0
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		if !slices.Contains(spoken, role) {
			continue
		}
		seen++
		name := ""
		if n.Name != nil {
			name = strings.Trim(string(n.Name.Value), `" `)
		}
		// A table is named by the heading before it.
		if name == "" && role != "table" && role != "form" {
			b.t.Errorf("%s: a %s has no name (%v)", path, role, n.BackendDOMNodeID)
		}
	}
	if seen == 0 {
		b.t.Errorf("%s: nothing has a role", path)
	}
}

// many is how many locks there are then. 100,000 take a quiet machine a minute.
var many = flag.Int("locks", 3000, "how many locks TestPagesOfManyLocks makes")

// Many locks make no page larger, nor slow.
func TestPagesOfManyLocks(t *testing.T) {
	t.Parallel()
	s := newStageSwept(t, "", func(s *stage) {
		pipe := s.rdb.Pipeline()
		for n := range *many {
			pipe.Set(t.Context(), "lock:bulk:"+itoa(int64(n)), token+itoa(int64(n)), time.Hour)
			if n%1000 == 999 || n == *many-1 {
				if _, err := pipe.Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	loads := 20
	if *many >= 100_000 { // the figures are wanted
		loads = 100
	}
	b := s.as("vi")
	b.visit("/locks")
	b.awaitFor(within+time.Duration(*many)*time.Millisecond, "document.body.innerText.includes("+quoted(fmt.Sprintf("of %d locks", *many))+")")
	for _, path := range []string{"/", "/locks", "/locks?q=99", "/locks?sort=key", "/locks?state=firing", "/findings", "/graph", "/requests", "/audit", "/rules", "/targets", "/locks/one?target=main&key=lock:bulk:7"} {
		b.visit(path)
		b.await("performance.getEntriesByName('first-contentful-paint').length === 1")
		b.do(chromedp.Evaluate[chromedp.Void](`window.times = null; (async () => { const out = []; for (let i = 0; i < ` + itoa(int64(loads)) + `; i++) { const t = performance.now(); await (await fetch(location.href, {cache: "no-store"})).text(); out.push(performance.now() - t); }
			window.times = out.sort((a, b) => a - b); })(), undefined`))
		b.awaitFor(2*time.Minute, "window.times !== null")
		t.Logf("%s: of %d loads the median took %.1f ms, the slowest but one in a hundred %.1f ms; first paint of content after %.0f ms", path, loads,
			js[float64](b, fmt.Sprintf("window.times[%d]", loads/2)), js[float64](b, fmt.Sprintf("window.times[%d]", loads-1-loads/100)),
			js[float64](b, "performance.getEntriesByName('first-contentful-paint')[0].startTime"))
		size, took := js[int](b, "performance.getEntriesByType('navigation')[0].decodedBodySize"), js[float64](b, "(e => e.responseStart - e.requestStart)(performance.getEntriesByType('navigation')[0])")
		t.Logf("%s: %d bytes, first byte after %.0f ms", path, size, took)
		if size > 100<<10 || size == 0 {
			t.Errorf("%s: %d bytes", path, size)
		}
	}
	b.visit("/locks?sort=key")
	first := b.text()
	b.follow("Next 50")
	b.sees("First page")
	if b.text() == first {
		t.Error("the second page is the first one")
	}
}
