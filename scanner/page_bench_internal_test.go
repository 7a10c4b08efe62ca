package scanner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// BenchmarkPage makes pages of a table of 100,000 locks, as a list of them is asked
// for; see BenchmarkListLocks100k of internal/agent for all of the way.
func BenchmarkPage(b *testing.B) {
	table := newTable(locksteward.Target{Name: "orders"})
	kind := traits{typ: "string", class: "orders", library: "token"}
	random := rand.New(rand.NewPCG(1, 2))
	for _, i := range random.Perm(100_000) {
		l := lockState{
			key: fmt.Sprintf("lock:order:%06d", i), traits: table.traitSet.of(kind), digest: fmt.Sprintf("hmac-sha256:%064d", i),
			at: 1_700_000_000_000_000, ttl: time.Minute, expireAt: 1_700_000_060_000 + random.Int64N(60_000), idle: -1,
		}
		e := begin(l)
		e.firstSeen -= random.Int64N(3_600_000_000)
		table.entries[l.key] = e
		table.rank(nil, e)
	}
	middle := Position{Key: "lock:order:050000"}
	for name, q := range map[string]Query{
		"key, 1000": {Limit: 1000}, "key, 100": {Limit: 100}, "key, 1000 behind the middle": {Limit: 1000, After: &middle},
		"age, 1000": {Order: ByAge, Limit: 1000}, "age, 100": {Order: ByAge, Limit: 100}, "ttl, 100": {Order: ByTTL, Limit: 100},
		"key, 1000 of a class": {Class: "orders", Limit: 1000},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.Page(q)
			}
		})
	}
}
