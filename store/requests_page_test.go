package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// Pages of requests are the list, newest first, also where many were made in the
// same moment and more are made between two pages; filters that have no column
// hold over all pages.
func TestPagesOfRequests(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		begin := newRequest("r-0", "k").CreatedAt
		add := func(i int) {
			r := newRequest(fmt.Sprintf("r-%02d", i), fmt.Sprintf("lock:%d", i))
			r.CreatedAt = begin.Add(time.Duration(i/4) * time.Second) // four in each moment
			r.Requester, r.Evidence.Class = []string{"Ann", "bob"}[i%2], []string{"orders", "jobs", "other"}[i%3]
			create(t, s, r)
		}
		const n = 20
		for i := range n {
			add(i)
		}
		ids := func(q store.RequestQuery, between func()) []string {
			var got []string
			for {
				list, err := s.QueryRequests(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range list {
					got = append(got, r.ID)
				}
				if len(list) < q.Limit || q.Limit <= 0 {
					return got
				}
				last := list[len(list)-1]
				q.AfterAt, q.AfterID = last.CreatedAt, last.ID
				between()
			}
		}
		want := func(keep func(i int) bool) []string {
			var out []string
			for i := n - 1; i >= 0; i-- {
				if keep(i) {
					out = append(out, fmt.Sprintf("r-%02d", i))
				}
			}
			return out
		}
		key := "lock:7"
		for name, c := range map[string]struct {
			q    store.RequestQuery
			keep func(i int) bool
		}{
			"all":             {store.RequestQuery{Limit: 3}, func(int) bool { return true }},
			"one by one":      {store.RequestQuery{Limit: 1}, func(int) bool { return true }},
			"at once":         {store.RequestQuery{Limit: -1}, func(int) bool { return true }},
			"of a class":      {store.RequestQuery{Class: "jobs", Limit: 2}, func(i int) bool { return i%3 == 1 }},
			"of a person":     {store.RequestQuery{Requester: "ANN", Limit: 3}, func(i int) bool { return i%2 == 0 }},
			"of both":         {store.RequestQuery{Requester: "Bob", Class: "orders", Limit: 1}, func(i int) bool { return i%2 == 1 && i%3 == 0 }},
			"since":           {store.RequestQuery{Since: begin.Add(3 * time.Second), Limit: 3}, func(i int) bool { return i/4 >= 3 }},
			"of a key":        {store.RequestQuery{Key: &key, Limit: 2}, func(i int) bool { return i == 7 }},
			"of a target":     {store.RequestQuery{Target: "orders", Limit: 7}, func(int) bool { return true }},
			"of no target":    {store.RequestQuery{Target: "x", Limit: 7}, func(int) bool { return false }},
			"in a state":      {store.RequestQuery{States: []locksteward.RequestState{locksteward.RequestPending}, Limit: 7}, func(int) bool { return true }},
			"in no state":     {store.RequestQuery{States: []locksteward.RequestState{locksteward.RequestDenied}, Limit: 7}, func(int) bool { return false }},
			"SQL for a class": {store.RequestQuery{Class: "' OR 1=1 --", Limit: 7}, func(int) bool { return false }},
		} {
			if got := ids(c.q, func() {}); !slices.Equal(got, want(c.keep)) {
				t.Errorf("%s: got %s", name, strings.Join(got, " "))
			}
		}
		more := n
		got := ids(store.RequestQuery{Limit: 3}, func() { add(more); more++ })
		if !slices.Equal(got, want(func(int) bool { return true })) {
			t.Errorf("while others are made: got %s", strings.Join(got, " "))
		}
	})
}
