package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// Lists are gathered page by page, with no page larger than needed, and say where
// they would go on.
func TestListsAreGatheredByPages(t *testing.T) {
	t.Parallel()
	const total = 2500
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, _ := strconv.Atoi(q.Get("cursor"))
		limit, _ := strconv.Atoi(q.Get("limit"))
		asked = append(asked, fmt.Sprintf("%d+%d", from, limit))
		to, next := min(from+limit, total), ""
		if to < total {
			next = strconv.Itoa(to)
		}
		w.Header().Set("Content-Type", "application/json")
		var answer any = api.LockList{Locks: make([]api.Lock, to-from), Total: total, Next: next}
		if r.URL.Path == "/api/v1/requests" {
			answer = api.RequestList{Requests: make([]api.Request, to-from), Next: next}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	client, err := apiclient.New(srv.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limit, want int
		next, asked string
	}{
		{0, 2500, "", "[0+1000 1000+1000 2000+1000]"},
		{2500, 2500, "", "[0+1000 1000+1000 2000+500]"},
		{1200, 1200, "1200", "[0+1000 1000+200]"},
		{10, 10, "10", "[0+10]"},
		{9999, 2500, "", "[0+1000 1000+1000 2000+1000]"},
	} {
		asked = nil
		locks, err := locksUpTo(t.Context(), client, apiclient.LocksQuery{Sort: "age"}, c.limit)
		if err != nil || len(locks.Locks) != c.want || locks.Next != c.next || locks.Total != total || fmt.Sprint(asked) != c.asked {
			t.Errorf("limit %d: %d locks of %d, next %q, asked %v, %v", c.limit, len(locks.Locks), locks.Total, locks.Next, asked, err)
		}
		asked = nil
		requests, err := requestsUpTo(t.Context(), client, apiclient.RequestsQuery{}, c.limit)
		if err != nil || len(requests.Requests) != c.want || requests.Next != c.next || fmt.Sprint(asked) != c.asked {
			t.Errorf("limit %d: %d requests, next %q, asked %v, %v", c.limit, len(requests.Requests), requests.Next, asked, err)
		}
	}
	if _, err := locksUpTo(t.Context(), client, apiclient.LocksQuery{}, -1); err == nil {
		t.Error("a negative limit is taken")
	}
}
