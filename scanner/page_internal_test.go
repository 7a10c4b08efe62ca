package scanner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

// drawLook is any look of a lock.
func drawLook(t *rapid.T, key string) lockState {
	at := time.UnixMicro(1_700_000_000_000_000 + rapid.Int64Range(0, 5_000_000).Draw(t, "at"))
	o := locksteward.Observation{
		Key: key, Type: "string", At: at, Idle: -1, Kind: locksteward.KindLock, TokenDigest: "d",
		Class:      rapid.SampledFrom([]string{"orders", "default"}).Draw(t, "class"),
		Library:    rapid.SampledFrom([]string{"token", "locksteward"}).Draw(t, "library"),
		TTL:        rapid.SampledFrom([]time.Duration{locksteward.NoExpiry, time.Second, time.Minute, 23 * time.Hour}).Draw(t, "ttl"),
		Asked:      rapid.Bool().Draw(t, "asked"),
		RenewEvery: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "renewEvery"),
		Waiters:    rapid.IntRange(-1, 2).Draw(t, "waiters"),
	}
	if o.TTL == locksteward.NoExpiry {
		o.ExpireAt = locksteward.NoExpireAt
	} else if rapid.Bool().Draw(t, "expiry known") {
		o.ExpireAt = at.Add(o.TTL).UnixMilli()
	}
	ago := func(label string) time.Duration {
		return time.Duration(rapid.SampledFrom([]int64{-5, 0, 0, 1, 1, 30, 3600, 80_000, 200_000}).Draw(t, label)) * time.Second
	}
	if rapid.Bool().Draw(t, "written") {
		o.Acquired = at.Add(-ago("acquired"))
	}
	if rapid.Bool().Draw(t, "claimed") {
		o.Claim = &locksteward.Claim{ID: "c", Acquired: at.Add(-ago("claim"))}
	}
	if rapid.Bool().Draw(t, "idle") {
		o.Idle = max(0, ago("idle for"))
	}
	if rapid.Bool().Draw(t, "held by") {
		o.Holder = locksteward.Holder{App: "Checkout", Host: rapid.SampledFrom([]string{"app-7", "app-8"}).Draw(t, "host")}
	}
	return lockStateOf(o)
}

func drawTable(t *rapid.T) *Table {
	table := newTable(locksteward.Target{Name: "orders", DB: 3})
	for i := range rapid.IntRange(0, 40).Draw(t, "locks") {
		l := drawLook(t, fmt.Sprintf("lock:%02d", i))
		e := begin(l)
		e.firstSeen = e.at - rapid.SampledFrom([]int64{0, 0, 1_000_000, 60_000_000}).Draw(t, "seen for")
		e.renewals = rapid.Int32Range(0, 2).Draw(t, "renewals")
		table.entries[l.key] = e
		table.rank(nil, e)
	}
	return table
}

// obvious is the list as one would make it of copies of all locks.
func obvious(table *Table, q Query) []locksteward.Lock {
	locks := slices.DeleteFunc(table.Locks(), func(l locksteward.Lock) bool {
		h := l.Holder
		named := strings.Contains(strings.ToLower(strings.Join([]string{h.App, h.Host, h.Session, h.Instance}, "\n")), strings.ToLower(q.Holder))
		return q.Class != "" && l.Class != q.Class || q.Library != "" && l.Library != q.Library ||
			q.NoTTL && l.TTL != locksteward.NoExpiry || q.Waited && l.Waiters <= 0 || !named || q.Keep != nil && !q.Keep(l.Key)
	})
	value := func(l locksteward.Lock) int64 {
		age, _, _ := l.Age()
		switch {
		case q.Order == ByTTL && l.TTL == locksteward.NoExpiry:
			return math.MaxInt64
		case q.Order == ByAge:
			return l.At.Add(-age).UnixMicro()
		case q.Order == ByTTL && l.ExpireAt > 0:
			return l.ExpireAt
		case q.Order == ByTTL:
			return l.At.UnixMilli() + l.TTL.Milliseconds()
		default:
			return 0
		}
	}
	slices.SortFunc(locks, func(a, b locksteward.Lock) int {
		return cmp.Or(cmp.Compare(value(a), value(b)), cmp.Compare(a.Key, b.Key))
	})
	return locks
}

// Pages put behind each other are the list, whatever is asked for.
func TestPagesAreTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		q := Query{
			Class:   rapid.SampledFrom([]string{"", "orders"}).Draw(t, "class"),
			Library: rapid.SampledFrom([]string{"", "token"}).Draw(t, "library"),
			NoTTL:   rapid.Bool().Draw(t, "no ttl"),
			Waited:  rapid.Bool().Draw(t, "waited"),
			Holder:  rapid.SampledFrom([]string{"", "PP-7", "check"}).Draw(t, "holder"),
			Order:   rapid.SampledFrom([]Order{ByKey, ByAge, ByTTL}).Draw(t, "order"),
			Limit:   rapid.IntRange(1, 20).Draw(t, "limit"),
		}
		if rapid.Bool().Draw(t, "keep") {
			q.Keep = func(key string) bool { return key[len(key)-1]%2 == 0 }
		}
		var want, got []string
		for _, l := range obvious(table, q) {
			want = append(want, l.Key)
		}
		for {
			page := table.Page(q)
			if page.Total != len(want) {
				t.Fatalf("total %d, want %d", page.Total, len(want))
			}
			if len(page.Locks) > q.Limit || page.More && len(page.Locks) < q.Limit {
				t.Fatalf("a page of %d with limit %d, more %v", len(page.Locks), q.Limit, page.More)
			}
			for _, l := range page.Locks {
				if l.Target != "orders" || l.DB != 3 {
					t.Fatalf("got %+v", l)
				}
				got = append(got, l.Key)
			}
			if !page.More {
				break
			}
			q.After = &page.At[len(page.At)-1]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// Behind is behind all locks of a value, and before those of the next.
func TestPositionsAreOrdered(t *testing.T) {
	t.Parallel()
	order := []Position{{Value: 1}, {Value: 1, Key: "a"}, {Value: 1, Key: "b"}, {Value: 1, Behind: true}, {Value: 2}, {Value: 2, Key: "a"}}
	for i, a := range order {
		for j, b := range order {
			if got, want := a.Compare(b), cmp.Compare(i, j); got != want {
				t.Errorf("%+v to %+v: %d, want %d", a, b, got, want)
			}
		}
	}
}

// While locks come, go and are renewed, each that is there all the time is on
// exactly one page, and no other twice.
func TestPagesHoldWhileLocksComeAndGo(t *testing.T) {
	t.Parallel()
	for _, order := range []Order{ByKey, ByAge} {
		table := newTable(locksteward.Target{Name: "orders"})
		kind := traits{typ: "string", class: "orders"}
		const stay = 5000
		put := func(key string, at int64) {
			table.mu.Lock()
			defer table.mu.Unlock()
			table.update(lockState{key: key, traits: table.traitSet.of(kind), digest: "d", at: at, ttl: time.Minute, idle: -1, expireAt: at/1000 + 60_000})
		}
		for i := range stay {
			put(fmt.Sprintf("stay:%04d", i), int64(i%97+1)*1000)
			put(fmt.Sprintf("stay:%04d", i), 10_000_000) // so that the age is known
		}
		done := make(chan struct{})
		var churn sync.WaitGroup
		churn.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				key := fmt.Sprintf("go:%04d", i%300)
				if i%2 == 0 {
					put(key, int64(i)+20_000_000)
				} else {
					table.mu.Lock()
					table.drop(key)
					table.mu.Unlock()
				}
				put(fmt.Sprintf("stay:%04d", i%stay), int64(i)+20_000_000)
			}
		})
		seen := map[string]int{}
		for q := (Query{Order: order, Limit: 100}); ; {
			page := table.Page(q)
			for _, l := range page.Locks {
				seen[l.Key]++
			}
			if !page.More {
				break
			}
			q.After = &page.At[len(page.At)-1]
		}
		close(done)
		churn.Wait()
		for i := range stay {
			if n := seen[fmt.Sprintf("stay:%04d", i)]; n != 1 {
				t.Fatalf("order %d: lock %d is on %d pages", order, i, n)
			}
		}
	}
}

// The orders that are kept are those of the table, whatever happened to it.
func TestRankingsFollowTheTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := newTable(locksteward.Target{Name: "orders"})
		at := int64(1_700_000_000_000_000)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			key := fmt.Sprintf("lock:%d", rapid.IntRange(0, 8).Draw(t, "key"))
			if at += 1_000_000; rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				table.drop(key)
				continue
			}
			l := drawLook(t, key)
			l.at = at
			l.digest = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "token")
			table.update(l)
			if rapid.IntRange(0, 5).Draw(t, "look") > 0 {
				continue
			}
			if rapid.IntRange(0, 3).Draw(t, "long after") == 0 {
				table.dropUnwanted(time.Now().Add(2 * unwantedAfter))
			}
			for _, order := range []Order{ByKey, ByAge, ByTTL} {
				var want, got []string
				for _, l := range obvious(table, Query{Order: order}) {
					want = append(want, l.Key)
				}
				for _, l := range table.Page(Query{Order: order, Limit: 100}).Locks {
					got = append(got, l.Key)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("order %d: got %v, want %v", order, got, want)
				}
			}
		}
	})
}

// An order that is made while locks come, go and are renewed lacks none of them, and
// is given up when nobody asks for it any more.
func TestOrderByExpiryIsMadeWhenWanted(t *testing.T) {
	t.Parallel()
	table := newTable(locksteward.Target{Name: "orders"})
	kind := traits{typ: "string", class: "orders"}
	put := func(i int, at int64) {
		table.mu.Lock()
		defer table.mu.Unlock()
		key := fmt.Sprintf("lock:%05d", i)
		table.update(lockState{key: key, traits: table.traitSet.of(kind), digest: "d", at: at, ttl: time.Minute, idle: -1, expireAt: at/1000 + 60_000 + int64(i*7919%10_000)})
	}
	const locks = 3 * chunk
	for i := range locks {
		put(i, 1_000_000)
	}
	if table.byTTL.list != nil || table.byTTL.fresh != nil {
		t.Fatal("the order is kept though nobody asked for it")
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			put(i*31%(2*locks), int64(i)+2_000_000)
			if i%5 == 0 {
				table.mu.Lock()
				table.drop(fmt.Sprintf("lock:%05d", i*17%(2*locks)))
				table.mu.Unlock()
			}
		}
	})
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for range 20 {
				if page := table.Page(Query{Order: ByTTL, Limit: 50}); len(page.Locks) != 50 {
					t.Errorf("a page of %d", len(page.Locks))
				}
			}
		})
	}
	askers.Wait()
	close(done)
	all.Wait()
	var want, got []string
	for _, l := range obvious(table, Query{Order: ByTTL}) {
		want = append(want, l.Key)
	}
	page := table.Page(Query{Order: ByTTL, Limit: 2 * locks})
	for _, l := range page.Locks {
		got = append(got, l.Key)
	}
	if !slices.Equal(got, want) || table.ttlKept != kept {
		t.Errorf("%d locks, want %d, in the order by expiry (kept: %v)", len(got), len(want), table.ttlKept == kept)
	}
	table.endSweep()
	if table.ttlKept != kept {
		t.Error("the order is given up while it is wanted")
	}
	table.asked = time.Now().Add(-2 * unwantedAfter)
	table.endSweep()
	if table.ttlKept != unwanted || table.byTTL.list != nil {
		t.Error("the order is kept though nobody asks for it")
	}
}
