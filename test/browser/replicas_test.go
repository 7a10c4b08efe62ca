package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// other is the value of another lock than token.
const other = "00000000-0000-4000-8000-000000000041"

// replicaOf is what the page of targets says of who works on a target.
func (b *tab) replicaOf(target string) string {
	b.t.Helper()
	return js[string](b, fmt.Sprintf(`[...document.querySelectorAll('[aria-label="Target %s"] .facts div')].filter(e => e.firstChild.textContent === 'Replica').map(e => e.lastChild.textContent).join()`, target))
}

// Whichever replica a person uses, it is one console: all targets are seen, a release
// is asked for at one replica, decided on at another and carried out by a third, and a
// session is good everywhere.
func TestReplicasAreOneConsole(t *testing.T) {
	t.Parallel()
	const key = "lock:order:42"
	f := newFleet(t)
	f.set("orders", key, other)
	f.set("stock", key, token)
	owner := f.holder("stock")
	a := f.but(owner)
	c := f.but(owner, a)
	ana := f.as("ana", a)
	for _, r := range []*testagent.Agent{a, owner, c} {
		ana.at(r) // with the session that was made at the first one
		ana.visit("/targets")
		ana.seesName("ana")
		ana.await("document.querySelectorAll('main article.card.good').length === 2")
		for _, target := range []string{"orders", "stock"} {
			testredis.Eventually(t, fleetWithin, func() bool {
				has := f.holder(target)
				return has != nil && ana.replicaOf(target) == has.Name
			}, r.Name+" does not say who works on "+target)
		}
		ana.shot("targets-at-" + r.Name)
		ana.visit("/locks")
		ana.await("[...document.querySelectorAll('main table.locks td[data-label=Lock] small')].map(e => e.textContent).sort().join() === 'orders,stock'")
		ana.visit("/findings?rule=ttl/none")
		ana.await("[...document.querySelectorAll('main article.card .meta')].map(e => /target (\\w+)/.exec(e.innerText)[1]).sort().join() === 'orders,stock'")
		ana.visit("/")
		ana.sees("2 of 2")
	}

	ana.at(a)
	ana.visit("/locks/one?target=stock&key=" + key)
	ana.sees("Request the release")
	ana.fill("reason", "its holder is gone, INC-7")
	ana.press("Dry run")
	ana.sees("Exactly this hold would be ended")
	ana.press("Request the release")
	ana.await("location.pathname.startsWith('/requests/r-')")
	ana.sees("waits for a decision")
	bo := f.as("bo", c)
	bo.sees("Releases that wait for a decision")
	bo.followKey(key)
	bo.sees("Then and now")
	bo.fill("reason", "the pod is gone, checked")
	bo.press("Approve")
	bo.sees("Released")
	if f.held("stock", key) || !f.held("orders", key) {
		t.Error("not the lock of the target that was meant is released")
	}
	// Nobody touches the requester's page, at another replica than both.
	ana.sees("Released")
	ana.sees("bo approved")
	for _, r := range []*testagent.Agent{a, owner, c} {
		bo.at(r)
		bo.visit("/audit")
		bo.sees("the pod is gone, checked")
	}

	// Who signs out at one replica is out at all of them.
	ana.signOut()
	ana.sees("Password")
	ana.at(c)
	ana.visit("/locks")
	ana.sees("Password")
}

// watching keeps every state that the page is in, and says that it does.
const watching = `(() => {
	window.states = [];
	const look = () => { const text = document.getElementById("main") ? document.getElementById("main").innerText : "no page"; if (states.at(-1) !== text) states.push(text); };
	new MutationObserver(look).observe(document.documentElement, {subtree: true, childList: true, characterData: true, attributes: true});
	look();
	return true;
})()`

// The replica that works on a target is killed under people's eyes: pages say what is
// the matter, keep what was typed, never say that a lock is gone which stands, and are
// right again by themselves.
func TestReplicaThatDiesUnderAPage(t *testing.T) {
	t.Parallel()
	const typed, waits = "lock:order:42", "lock:order:43"
	f := newFleet(t)
	f.set("stock", typed, token)
	f.set("stock", waits, other)
	owner := f.holder("stock")
	a := f.but(owner)
	c := f.but(owner, a)
	ana, bo, vi := f.as("ana", a), f.as("bo", c), f.as("vi", owner)
	ana.visit("/locks/one?target=stock&key=" + waits)
	ana.sees("Request the release")
	ana.fill("reason", "its holder is gone, INC-7")
	ana.press("Request the release")
	ana.await("location.pathname.startsWith('/requests/r-')")
	request := js[string](ana, "location.pathname")
	bo.visit(request)
	bo.sees("Then and now")
	bo.fill("reason", "checked")
	ana.visit("/locks/one?target=stock&key=" + typed)
	ana.sees("Request the release")
	ana.fill("reason", "half a sent")
	vi.visit("/locks/one?target=stock&key=" + typed)
	vi.sees("no TTL")
	list := f.as("vi", a)
	list.visit("/locks")
	list.sees(typed)
	for _, b := range []*tab{ana, bo, vi, list} {
		b.await("document.getElementById('live').textContent === 'live'")
		js[bool](b, watching)
	}
	const digest = "[...document.querySelectorAll('main .facts div')].filter(e => e.textContent.startsWith('Token')).map(e => e.textContent).join()"
	seen := js[string](ana, digest)

	owner.Kill()
	f.set("stock", typed, "00000000-0000-4000-8000-000000000042") // another hold, that the next replica sees
	// Anyone who decides while nobody works on the target has it done, or is informed why not,
	// and then does it again.
	bo.press("Approve")
	bo.await("document.body.innerText.includes('Released') || !!document.querySelector('main [role=alert]')")
	if js[bool](bo, "!!document.querySelector('main [role=alert]')") {
		bo.shot("approve-while-nobody-works-on-it")
		if got := js[string](bo, "document.querySelector('main textarea[name=reason]').value"); got != "checked" {
			t.Errorf("what was typed is gone: %q", got)
		}
		testredis.Eventually(t, fleetWithin, func() bool { r := f.holder("stock"); return r != nil && r != owner }, "nobody takes the target over")
		bo.press("Approve")
	}
	bo.sees("Released")
	if f.held("stock", waits) {
		t.Error("the page says that it is released, and it is not")
	}

	ana.await(digest + " !== '' && " + digest + " !== " + quoted(seen))
	ana.await("!document.querySelector('main [role=alert]') && document.getElementById('live').textContent === 'live'")
	if got := js[string](ana, "document.querySelector('main textarea[name=reason]').value"); got != "half a sent" {
		t.Errorf("what was typed is gone: %q", got)
	}
	list.await("document.querySelectorAll('main table.locks tbody tr').length === 1 && !document.querySelector('main .notice')")
	// The page of the replica that died stands as it was, and says so.
	vi.await("document.getElementById('live').textContent === 'reconnecting'")
	for name, b := range map[string]*tab{"the page of a lock": ana, "the list": list, "the page at the replica that died": vi} {
		states := js[[]string](b, "states")
		for _, text := range states {
			if bad := wrongly(text); bad != "" {
				t.Errorf("%s said %q once:\n%s", name, bad, text)
			}
		}
	}
	// A replica that hangs ends no connection, and the page says so all the same.
	a.Freeze()
	js[bool](list, "(now => { Date.now = () => now() + 60000; return true; })(Date.now.bind(Date))")
	list.await("document.getElementById('live').textContent === 'reconnecting'")
	a.Thaw()
	list.await("document.getElementById('live').textContent === 'live'")

	vi.at(a)
	vi.visit("/targets")
	vi.seesName("vi") // with the session of the replica that died
	vi.await("document.querySelectorAll('main article.card.good').length === 2")
	testredis.Eventually(t, fleetWithin, func() bool { // the one that was frozen has to find out
		got := vi.replicaOf("stock")
		return got != owner.Name && got != ""
	}, "stock is worked on by nobody, or by the replica that died")
}

// wrongly is what a page must not say of a lock that stands the whole time; "" for
// nothing.
func wrongly(text string) string {
	for _, bad := range []string{"no page", "There is no lock with this name", "No locks are held", "Released", "Nothing needs attention", "goroutine", "x509", "gob"} {
		if strings.Contains(text, bad) {
			return bad
		}
	}
	if strings.TrimSpace(text) == "" {
		return "nothing at all"
	}
	return ""
}
