package expr

import (
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/locksteward/locksteward/class"
)

func holderFields() []field {
	return []field{
		named("app", "The application.", "lock.holder.app == 'billing'", func(f *Facts) string { return f.Lock.Holder.App }),
		named("host", "The host.", "lock.holder.host.endsWith('.batch.example.org')", func(f *Facts) string { return f.Lock.Holder.Host }),
		number("pid", "The process.", "lock.holder.pid == 1", func(f *Facts) (int64, bool) { return int64(f.Lock.Holder.PID), f.Lock.Holder.PID != 0 }),
		named("session", "The logical thread of work.", "lock.holder.session == '42'", func(f *Facts) string { return f.Lock.Holder.Session }),
		named("instance", "The process's own id.", "has(lock.holder.instance)", func(f *Facts) string { return f.Lock.Holder.Instance }),
	}
}

// claimFields are reached only through lock.claim, so that Lock.Claim is not nil
// in any of them.
func claimFields() []field {
	return []field{
		named("id", "The id of this acquisition.", "lock.claim.id == 'c1'", func(f *Facts) string { return f.Lock.Claim.ID }),
		named("class", "The class that the holder named.", "lock.claim.class != lock.class", func(f *Facts) string { return f.Lock.Claim.Class }),
		named("purpose", "What the holder says it is doing.", "lock.claim.purpose.contains('import')", func(f *Facts) string { return f.Lock.Claim.Purpose }),
		moment("acquired", "When the lock was taken.", "lock.claim.acquired < timestamp('2026-01-01T00:00:00Z')", func(f *Facts) time.Time { return f.Lock.Claim.Acquired }),
		moment("renewed", "The acquisition or the last successful renewal.", "now - lock.claim.renewed > duration('1m')", func(f *Facts) time.Time { return f.Lock.Claim.Renewed }),
		moment("progress", "When the work itself last reported progress. Not known if it never does.", "now - lock.claim.progress > duration('10m')", func(f *Facts) time.Time { return f.Lock.Claim.Progress }),
		said("ttl", "The lease that was asked for.", "lock.claim.ttl > duration('1h')", func(f *Facts) time.Duration { return f.Lock.Claim.TTL }),
		said("renew_every", "The interval of the watchdog. Not known if there is none.", "!has(lock.claim.renew_every)", func(f *Facts) time.Duration { return f.Lock.Claim.RenewEvery }),
		said("expect", "How long the holder expects to need.", "lock.age > lock.claim.expect", func(f *Facts) time.Duration { return f.Lock.Claim.Expect }),
		said("max_hold", "How long the holder lets itself hold it at most.", "!has(lock.claim.max_hold)", func(f *Facts) time.Duration { return f.Lock.Claim.MaxHold }),
		number("renewals", "Renewals that worked.", "lock.claim.renewals > 1000", func(f *Facts) (int64, bool) { return f.Lock.Claim.Renewals, true }),
		number("renew_failures", "Renewals that failed, as the next success reported.", "lock.claim.renew_failures > 0", func(f *Facts) (int64, bool) { return f.Lock.Claim.RenewFailures, true }),
		number("fence", "The fencing number. Not known if there is none.", "lock.claim.fence > 0", func(f *Facts) (int64, bool) { return f.Lock.Claim.Fence, f.Lock.Claim.Fence != 0 }),
		number("holds", "The depth of re-entrancy.", "lock.claim.holds > 1", func(f *Facts) (int64, bool) { return f.Lock.Claim.Holds, true }),
		known("holding", cel.ListType(cel.StringType), sizeWord, "The other locks that the session held when it took this one.", "lock.claim.holding.exists(k, k.startsWith('lock:account:'))", func(f *Facts) (any, bool) {
			return types.NewStringList(types.DefaultTypeAdapter, f.Lock.Claim.Holding), true
		}),
	}
}

// instanceFields are reached only through lock.instance.
func instanceFields() []field {
	return []field{
		named("id", "The process's own id.", "lock.instance.id == lock.holder.instance", func(f *Facts) string { return f.Lock.Instance.ID }),
		named("app", "The application.", "lock.instance.app == 'billing'", func(f *Facts) string { return f.Lock.Instance.App }),
		named("host", "The host.", "lock.instance.host == 'web-3'", func(f *Facts) string { return f.Lock.Instance.Host }),
		number("pid", "The process.", "lock.instance.pid > 1", func(f *Facts) (int64, bool) { return int64(f.Lock.Instance.PID), f.Lock.Instance.PID != 0 }),
		named("slot", "A name that one live process has at a time, as declared.", "lock.instance.slot == 'worker-0'", func(f *Facts) string { return f.Lock.Instance.Slot }),
		moment("started", "When the process started.", "lock.claim.acquired < lock.instance.started", func(f *Facts) time.Time { return f.Lock.Instance.Started }),
		moment("beat", "The last heartbeat.", "lock.instance.beat < lock.claim.renewed", func(f *Facts) time.Time { return f.Lock.Instance.Beat }),
		span("beat_age", "How long ago the last heartbeat was; one is due every 5 s, and after 15 s without one the process has no heartbeat at all.", "lock.instance.beat_age > duration('10s')", func(f *Facts) (time.Duration, bool) {
			return max(0, f.Now.Sub(f.Lock.Instance.Beat)), !f.Lock.Instance.Beat.IsZero()
		}),
		known("alive", cel.BoolType, 0, "The last heartbeat is at most 7.5 s old.", "lock.instance.alive", func(f *Facts) (any, bool) {
			return types.Bool(f.Alive), !f.Lock.Instance.Beat.IsZero()
		}),
	}
}

func classFields() []field {
	return []field{
		text("name", sizeName, "Its name, as lock.class.", "class.name == 'batch'", func(f *Facts) string { return f.Class.Name }),
		named("team", "Its team. Not known if none is configured.", "class.team == 'checkout'", func(f *Facts) string { return f.Class.Team }),
		said("expect", "How long a hold may last. Not known if none is configured.", "lock.age > class.expect", func(f *Facts) time.Duration { return f.Class.Expect }),
		said("max_ttl", "The longest TTL; 24 h unless configured.", "lock.ttl > class.max_ttl", func(f *Facts) time.Duration { return f.Class.MaxTTLOrDefault() }),
		boolean("ttl_required", "The class says `ttl: required`.", "class.ttl_required && !lock.has_ttl", func(f *Facts) bool { return f.Class.TTL == class.TTLRequired }),
		boolean("releasable", "Locks of the class may be force-released.", "class.releasable", func(f *Facts) bool { return f.Class.Releasable() }),
	}
}

// said is a duration that is not known while it is zero.
func said(name, doc, example string, get func(*Facts) time.Duration) field {
	return span(name, doc, example, func(f *Facts) (time.Duration, bool) {
		d := get(f)
		return d, d > 0
	})
}
