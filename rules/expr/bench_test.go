package expr

import (
	"testing"
	"time"
)

func BenchmarkEval(b *testing.B) {
	f := knownFacts()
	for name, source := range map[string]string{
		"age":     "lock.class == 'batch' && lock.age > duration('2h')",
		"key":     "lock.key.startsWith('lock:order:') && !lock.has_ttl",
		"regex":   "lock.key.matches('^lock:order:[0-9]+$')",
		"unknown": "lock.fence > 3",
		"claim":   "lock.claim.renew_failures > 0 && now - lock.claim.renewed > lock.claim.renew_every + duration('5s')",
	} {
		p, err := Compile(source)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = p.Eval(f)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile("lock.class == 'batch' && lock.age > duration('2h')"); err != nil {
			b.Fatal(err)
		}
	}
}

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
