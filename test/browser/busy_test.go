package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// busyFindings is how many locks of one class have the same finding, busyLocks how many are healthy.
const (
	busyFindings = 57
	busyLocks    = 240
)

// busy fills a server as a large incident does: 300 locks, 57 of one class without TTL, and what [scene] has.
func busy(s *stage) {
	scene(s)
	pipe := s.rdb.Pipeline()
	for n := range busyFindings {
		pipe.Set(s.t.Context(), fmt.Sprintf("lock:order:%d", 700+n), fmt.Sprintf("5f2b8c1e-9d1a-4b6e-8f0b-%012d", n), 0)
	}
	for n := range busyLocks {
		pipe.Set(s.t.Context(), fmt.Sprintf("lock:cart:%d", 10_000+n), fmt.Sprintf("5f2b8c1e-9d1a-4b6e-8f0c-%012d", n), time.Hour+time.Duration(n)*time.Minute)
	}
	if _, err := pipe.Exec(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// decided requests five releases of a [busy] server: three stay open, one is denied and one approved.
func (s *stage) decided(ana, bo *tab) []string {
	s.t.Helper()
	var paths []string
	for n := range 5 {
		paths = append(paths, s.ask(ana, fmt.Sprintf("key=lock:order:%d", 700+n)))
	}
	for i, press := range []string{"Deny", "Approve"} {
		bo.visit(paths[i])
		bo.fill("reason", "checked with the owner, INC-7")
		bo.press(press)
		bo.sees([]string{"Denied by bo", "Released"}[i])
	}
	return paths
}

// Pages of a large incident, and of an agent that has seen nothing yet, keep the same promises as those of a small one.
func TestBusyAndEmptyPages(t *testing.T) {
	t.Parallel()
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, busy)
		ana, bo := s.as("ana"), s.as("bo")
		ana.await("document.querySelectorAll('main article.card').length >= 4")
		requests := s.decided(ana, bo)
		pages := everyPage(ana)
		pages["request"], pages["request-denied"] = requests[4], requests[0]
		pages["silences"] = "/silences"
		checkPages(t, s.as("max"), pages)
		checkPages(t, newTab(t, s.url), map[string]string{"sign-in": "/sign-in"})
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, nil)
		bo := s.as("bo")
		bo.await("!document.querySelector('main').innerText.includes('first sweep')")
		checkPages(t, bo, map[string]string{
			"overview": "/", "findings": "/findings", "locks": "/locks", "requests": "/requests", "audit": "/audit", "graph": "/graph",
			"silences": "/silences", "notifications": "/notifications", "targets": "/targets", "classes": "/classes",
		})
	})
}

// The overview's strips tell what fired, that a server was restarted, and what was released.
func TestOverviewOverTime(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(s *stage) {
		for n := range 4 {
			s.set(fmt.Sprint("lock:order:", n), fmt.Sprintf("5f2b8c1e-9d1a-4b6e-8f0a-%012d", n))
		}
	})
	b := s.as("max")
	b.within = 3 * within // findings and the history are written in the background
	s.ask(b, "key=lock:order:0")
	bo := s.as("bo")
	bo.visit("/requests?state=pending")
	bo.do(chromedp.Click(`(//main//tbody//a)[1]`))
	bo.sees("Then and now")
	bo.fill("reason", "checked")
	bo.press("Approve")
	bo.sees("Released")
	s.srv.Restart()
	b.awaitOn("/", "document.getElementById('hour-title').innerText.includes('1 restart') && /[1-9][0-9]* critical/.test(document.getElementById('day-title').innerText)")
	b.sees("1 release")
	for what, n := range map[string]int{"svg.tall .bar.critical": 1, ".lane:nth-child(2) .bar": 1, ".lane:nth-child(3) .bar.forced": 1} {
		if got := js[int](b, "document.querySelectorAll('#main .activity section:first-child "+what+"').length"); got < n {
			t.Errorf("%d of %s in the last hour", got, what)
		}
	}
	b.sees("of its server")
}

// awaitOn loads a page until an expression is true of it.
func (b *tab) awaitOn(path, expression string) {
	b.t.Helper()
	b.visit(path)
	b.awaitFor(b.within, "("+expression+") || (document.readyState === 'complete' && performance.now() > 3000 && location.reload(), false)")
}
