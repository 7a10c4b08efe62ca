package browser_test

import (
	"strings"
	"testing"
)

// The way of a lock that is dead: found, requested, refused to who asked, approved
// by another person, and its release watched by the first one without loading
// anything again.
func TestReleaseInABrowser(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	s := newStage(t, func(s *stage) { s.set(key, token) })
	max, bo := s.as("max"), s.as("bo")

	max.sees("lock:order:42")
	max.await("document.querySelector('.strip li.critical b').textContent === '1'")
	alert := js[string](max, "document.querySelector('main h3 a[href^=\"/findings/\"]').getAttribute('href')")
	max.followKey(key)
	max.sees("ttl/none")
	max.sees("Request the release")
	max.fill("reason", "its holder is gone, INC-7")
	max.press("Dry run")
	max.sees("Exactly this hold would be ended")
	max.press("Request the release")
	max.await("location.pathname.startsWith('/requests/r-')")
	max.sees("waits for a decision")
	max.sees("You cannot approve this.")
	max.sees("another approver has to decide")
	if js[bool](max, "[...document.querySelectorAll('main button')].some(b => b.textContent.startsWith('Approve'))") {
		t.Error("the requester is offered to approve")
	}
	max.shot("self-approval-refused")

	bo.visit("/")
	bo.sees("Releases that wait for a decision")
	bo.followKey(key)
	bo.sees("Then and now")
	bo.fill("reason", "the pod is gone, checked")
	bo.shot("decide")
	if !s.held(key) {
		t.Fatal("the lock is gone before anybody approved")
	}
	bo.press("Approve")
	bo.sees("Released")
	if s.held(key) {
		t.Error("the lock stands after its release")
	}
	// Nobody touches the requester's page.
	max.sees("Released")
	max.sees("bo approved")
	max.shot("released-live")
	bo.visit(alert) // the link of an alert about what is over
	bo.sees("resolved")
	bo.sees("That is over since")
	bo.visit("/audit")
	bo.sees("release: approve")
	bo.sees("the pod is gone, checked")
	for _, b := range []*tab{max, bo} {
		if html := js[string](b, "document.documentElement.outerHTML"); len(html) == 0 || containsToken(html) {
			t.Error("the page has the lock's token")
		}
	}
}

func containsToken(text string) bool { return strings.Contains(text, token) }
