package console

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// Findings of one cause are one card that counts them, on the overview and in the list; the list of that cause shows each of them, and
// following its pages meets each once.
func TestFindingsOfOneCauseAreOneCard(t *testing.T) {
	t.Parallel()
	b := setup(t, "requester")
	b.world.findings = nil
	for n := range 57 {
		b.world.findings = append(b.world.findings, aFinding(fmt.Sprintf("lock:order:%02d", n)))
	}
	late := aFinding("lock:order:60")
	late.Severity = locksteward.SeverityWarning
	pendingOne := aFinding("lock:order:61")
	pendingOne.Status = locksteward.StatusPending
	other := aFinding("lock:cart:1")
	other.Class = "carts"
	b.world.findings = append(b.world.findings, late, pendingOne, other)
	const title = "57 locks in class orders: a lock has no TTL"
	for path, cards := range map[string]int{"/": 3, "/findings": 4} {
		body := b.do("requester", "GET", path, "").body
		if strings.Count(body, title) < 1 || strings.Count(body, "<article") != cards {
			t.Errorf("%s: %d cards, want %d, one of them of 57\n%s", path, strings.Count(body, "<article"), cards, body)
		}
		if strings.Count(body, `<ul class="members">`) != 1 || !strings.Contains(body, "The first 10") || strings.Contains(body, "lock:order:15") {
			t.Errorf("%s: the card lists something else than its first ten", path)
		}
	}
	address := regexp.MustCompile(`<h3[^>]*>.*<a href="([^"]+)">` + title).FindStringSubmatch(b.do("requester", "GET", "/", "").body)
	if address == nil {
		t.Fatal("the card leads nowhere")
	}
	seen := map[string]bool{}
	for path, pages := strings.ReplaceAll(address[1], "&amp;", "&"), 0; path != ""; pages++ {
		body := b.do("requester", "GET", path, "").body
		for _, m := range regexp.MustCompile(`<h3 id="f-([0-9a-f]+)"`).FindAllStringSubmatch(body, -1) {
			if seen[m[1]] {
				t.Errorf("finding %s is there twice", m[1])
			}
			seen[m[1]] = true
		}
		path = ""
		if next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body); next != nil && pages < 5 {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if len(seen) != 57 {
		t.Errorf("%d findings of the cause are listed, want 57", len(seen))
	}
}

// Pages of cards meet each cause once.
func TestPagesOfCards(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.findings = nil
	for n := range 2 * 45 {
		f := aFinding(fmt.Sprintf("lock:%03d", n))
		f.Class = fmt.Sprintf("class-%02d", n/2)
		b.world.findings = append(b.world.findings, f)
	}
	seen := map[string]bool{}
	path, pages := "/findings?severity=critical", 0
	for ; path != "" && pages < 10; pages++ {
		body := b.do("", "GET", path, "").body
		for _, m := range regexp.MustCompile(`">2 locks in class (class-[0-9]+): `).FindAllStringSubmatch(body, -1) {
			if seen[m[1]] {
				t.Errorf("%s is there twice", m[1])
			}
			seen[m[1]] = true
		}
		path = ""
		if next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body); next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if len(seen) != 45 || pages != 3 {
		t.Errorf("%d causes on %d pages, want 45 on 3", len(seen), pages)
	}
}

// A card offers one thing to do, which its reader may do.
func TestCardsOfferOneAction(t *testing.T) {
	t.Parallel()
	lock := func(change func(f *locksteward.Finding)) locksteward.Finding {
		f := aFinding("lock:order:50")
		change(&f)
		return f
	}
	page := "/locks/one?db=0&amp;key=lock%3Aorder%3A50&amp;target=orders"
	host := lock(func(f *locksteward.Finding) { f.Rule, f.Key, f.Class, f.Subject = ruleHostLost, "", "", "web-3" })
	server := lock(func(f *locksteward.Finding) { f.Rule, f.Key, f.Class = "server/not-durable", "", "" })
	for name, c := range map[string]struct {
		role    string
		finding locksteward.Finding
		want    string
	}{
		"no TTL":            {"requester", lock(func(*locksteward.Finding) {}), `href="` + page + `#release">Request release<`},
		"may not ask":       {"viewer", lock(func(*locksteward.Finding) {}), `href="` + page + `#holder">Open holder<`},
		"not yet certain":   {"requester", lock(func(f *locksteward.Finding) { f.Status = locksteward.StatusPending }), `#holder">Open holder<`},
		"renewed late":      {"requester", lock(func(f *locksteward.Finding) { f.Rule = "renewal/failing" }), `#holder">Open holder<`},
		"asked for already": {"requester", lock(func(f *locksteward.Finding) { f.Key = "lock:order:42" }), `href="/requests/r1">Open its request<`},
		"somebody waits":    {"requester", lock(func(f *locksteward.Finding) { f.Rule = "wait/starved" }), `href="/graph?target=orders">See who waits<`},
		"a dead host":       {"requester", host, `href="/findings/` + host.Fingerprint() + `#host-title">Request release of its locks<`},
		"a server":          {"approver", server, `href="/findings/` + server.Fingerprint() + `#accept">Silence<`},
		"a server, viewed":  {"viewer", server, `href="/findings/` + server.Fingerprint() + `">Details<`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.role)
			b.world.findings = []locksteward.Finding{c.finding}
			body := b.do(c.role, "GET", "/findings?target="+url.QueryEscape("orders"), "").body
			if !strings.Contains(body, c.want) || strings.Count(body, `class="do"`) != 1 {
				t.Errorf("want one action, %s\n%s", c.want, body)
			}
		})
	}
}

// A request that is open is found by its lock's bytes, not by what is shown of them.
func TestActionsGoByBytes(t *testing.T) {
	t.Parallel()
	key := api.LockKey{Target: "orders", Key: "a\xff"}
	a := actions{view: view{Lang: "en"}, open: map[api.LockKey]string{key: "/requests/r1"}}
	f := aFinding("a\xfe")
	if got := a.of(f); got.Name == "Open its request" {
		t.Errorf("another lock's request is offered: %+v", got)
	}
	f.Key = key.Key
	if got := a.of(f); got.Path != "/requests/r1" {
		t.Errorf("got %+v", got)
	}
}
