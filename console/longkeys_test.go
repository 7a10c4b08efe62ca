package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// However long a key is, its lock has a page: lists lead to it by the key's digest,
// and what is asked for there is the lock of that very key.
func TestLongKeysHaveAPage(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	w := b.world
	long := "lock:" + strings.Repeat("<\xff&", 20_000)
	other := long + "x"
	w.locks = append(w.locks[:0], aLock(long, time.Minute), aLock(other, time.Minute))
	w.findings = nil
	w.requests = w.requests[:0]
	list := b.do("all", "GET", "/locks", "").body
	address := "/locks/one?db=0&amp;key_sha256=" + KeySum(other) + "&amp;target=orders"
	if !strings.Contains(list, address) || len(list) > 100<<10 {
		t.Fatalf("a list of %d bytes does not lead to the lock", len(list))
	}
	at := "/locks/one?db=0&target=orders&key_sha256="
	page := b.do("all", "GET", at+KeySum(other), "")
	if page.status != http.StatusOK || len(page.body) > 100<<10 || !strings.Contains(page.body, `name="key_sha256" value="`+KeySum(other)) ||
		!strings.Contains(page.body, "(100006 bytes)") && !strings.Contains(page.body, "(60006 bytes)") {
		t.Errorf("status %d, %d bytes", page.status, len(page.body))
	}
	for query, want := range map[string]int{
		KeySum("lock:none"):           http.StatusNotFound,
		"xyz":                         http.StatusBadRequest,
		strings.Repeat("0", 63):       http.StatusBadRequest,
		KeySum(long) + "&key=a":       http.StatusBadRequest,
		strings.ToUpper(KeySum(long)): http.StatusOK,
		KeySum(long) + "&key_b64=" + url.QueryEscape("YQ=="): http.StatusBadRequest,
	} {
		if got := b.do("all", "GET", at+query, "").status; got != want {
			t.Errorf("%s: status %d, want %d", query, got, want)
		}
	}
	// A lock that ended is found by what was asked for it.
	r := pending()
	r.Evidence.Key = long
	w.requests, w.locks = append(w.requests, r), nil
	if gone := b.do("all", "GET", at+KeySum(long), ""); gone.status != http.StatusNotFound || !strings.Contains(gone.body, "There is no lock with this name now.") || !strings.Contains(gone.body, "/requests/"+r.ID) {
		t.Errorf("of a lock that ended: status %d", gone.status)
	}
}
