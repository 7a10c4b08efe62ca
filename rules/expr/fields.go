package expr

import (
	"cmp"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/locksteward/locksteward"
)

// Names of the object types; what an expression calls a fact is its path.
const (
	lockType     = "Lock"
	classType    = "Class"
	holderType   = "Holder"
	claimType    = "Claim"
	instanceType = "Instance"
)

// field is one fact: what it is called, what it is, and where it comes from.
type field struct {
	name    string
	typ     *cel.Type
	doc     string
	example string
	// size bounds what the estimate of the cost takes for granted: bytes of a
	// string, elements of a list. The cost at run time is that of the real value.
	size uint64
	// get returns the value, and false while it is not known.
	get func(f *Facts) (any, bool)
}

// object is a type of facts and the path under which expressions reach it.
type object struct {
	typ    string
	path   string
	doc    string
	fields []field
}

// Sizes of names as they are usual; longer ones cost more when they come.
const (
	sizeKey  = 512
	sizeName = 128
	sizeWord = 32
)

// objects are all facts beside the variables that have no fields.
func objects() []object {
	return []object{
		{lockType, "lock", "The lock.", lockFields()},
		{holderType, "lock.holder", "Who has the lock, as far as its library or metadata tells.", holderFields()},
		{claimType, "lock.claim", "What the holder itself wrote beside the lock (our library and the clients that write its metadata). Not known for other locks.", claimFields()},
		{instanceType, "lock.instance", "The heartbeat of the holder's process. Not known if the lock names no process, or if no heartbeat of it was found.", instanceFields()},
		{classType, "class", "The lock's class, as configured.", classFields()},
	}
}

func lockFields() []field {
	return []field{
		text("key", sizeKey, "The key's name, byte for byte.", "lock.key.startsWith('lock:order:')", func(f *Facts) string { return f.Lock.Key }),
		text("class", sizeName, "The class that claims the key; `default` if none does.", "lock.class == 'batch'", func(f *Facts) string { return f.Lock.Class }),
		boolean("configured", "A configured class claims the key.", "lock.configured", func(f *Facts) bool { return f.Lock.Configured }),
		text("library", sizeWord, "The library that wrote it, by the names of docs/libraries.", "lock.library in ['redisson', 'token']", func(f *Facts) string { return f.Lock.Library }),
		text("confidence", sizeWord, "How certain the library is: `high`, `medium` or `low`.", "lock.confidence == 'high'", func(f *Facts) string { return string(f.Lock.Confidence) }),
		text("type", sizeWord, "The key's type as Redis calls it.", "lock.type == 'hash'", func(f *Facts) string { return f.Lock.Type }),
		number("db", "The number of the database.", "lock.db == 0", func(f *Facts) (int64, bool) { return int64(f.Lock.DB), true }),
		text("node", sizeName, "The address of the master that it was read from.", "lock.node == '10.0.0.7:6379'", func(f *Facts) string { return f.Lock.Node }),
		boolean("has_ttl", "The key expires.", "!lock.has_ttl", func(f *Facts) bool { return f.Lock.TTL != locksteward.NoExpiry }),
		span("ttl", "The time left before the key expires. Not known if it never does.", "lock.ttl < duration('1m')", func(f *Facts) (time.Duration, bool) {
			return f.Lock.TTL, f.Lock.TTL != locksteward.NoExpiry
		}),
		span("age", "How long this hold is proven to last. Under a constant token it counts only from the last change of the expiry, and without a TTL it is not known.", "lock.age > duration('2h')", func(f *Facts) (time.Duration, bool) {
			return f.Age.Value, f.Age.known()
		}),
		moment("acquired", "When the lock was taken as its value says, by the holder's clock. Not known if the value does not say, and never in `dead_when`.", "now - lock.acquired > duration('1h')", func(f *Facts) time.Time { return f.Lock.Acquired }),
		known("mode", cel.StringType, sizeWord, "`read` or `write` of a lock that has both. Not known of any other.", "lock.mode == 'write'", func(f *Facts) (any, bool) {
			return celString(f.Lock.Mode), f.Lock.Mode != ""
		}),
		text("age_basis", sizeWord, "Where the age comes from: `claimed` (the holder's word), `observed` (seen for at least), `idle` (not touched for at least) or `none`.", "lock.age_basis == 'claimed'", func(f *Facts) string {
			if !f.Age.known() {
				return string(locksteward.AgeNone)
			}
			return string(f.Age.Basis)
		}),
		boolean("age_is_minimum", "The true age may be larger: `<` over the age then proves nothing.", "lock.age < duration('1m') && !lock.age_is_minimum", func(f *Facts) bool { return f.Age.Minimum || !f.Age.known() }),
		span("idle", "For how long at least no client had touched the key when this hold was first seen (OBJECT IDLETIME), and the time since: what clients do later is hidden by our own reads. Not known under an LFU policy.", "lock.idle > duration('1h')", func(f *Facts) (time.Duration, bool) {
			return f.Lock.Idle, f.Lock.Idle >= 0
		}),
		moment("first_seen", "When this hold was first seen.", "now - lock.first_seen > duration('1h')", func(f *Facts) time.Time { return f.Lock.History.FirstSeen }),
		number("looks", "How many looks saw this hold.", "lock.looks >= 3", func(f *Facts) (int64, bool) { return int64(f.Lock.History.Looks), true }),
		text("identity", sizeWord, "How surely this hold can be distinguished from the next one: `strong`, `lineage` or `none`.", "lock.identity == 'strong'", func(f *Facts) string {
			if f.Lock.Identity == "" {
				return string(locksteward.IdentityNone)
			}
			return string(f.Lock.Identity)
		}),
		boolean("shared_token", "The token is a constant, or names a host or process: any client could release the lock.", "lock.shared_token", func(f *Facts) bool { return f.Lock.SharedToken }),
		known("token_kind", cel.StringType, sizeName, "What kind of constant the token is. Not known if it is not a constant.", "lock.token_kind == 'a one-digit number'", func(f *Facts) (any, bool) {
			return celString(f.Lock.TokenKind), f.Lock.TokenKind != ""
		}),
		number("size", "Bytes of a string, members of any other type.", "lock.size > 1000", func(f *Facts) (int64, bool) { return f.Lock.Size, true }),
		boolean("too_large", "The value was too large to be read in full.", "lock.too_large", func(f *Facts) bool { return f.Lock.TooLarge }),
		known("holder", cel.ObjectType(holderType), 0, "Who has it; see below.", "has(lock.holder.host)", func(f *Facts) (any, bool) { return f, true }),
		number("count", "How often the holder has entered it; 1 where the library does not count.", "lock.count > 10", func(f *Facts) (int64, bool) { return f.Lock.Count, true }),
		number("fence", "The fencing number. Not known where the library has none.", "lock.fence > 0", func(f *Facts) (int64, bool) { return f.Lock.Fence, f.Lock.Fence != 0 }),
		number("waiters", "How many clients wait. Not known where the library does not tell.", "lock.waiters > 20", func(f *Facts) (int64, bool) { return int64(f.Lock.Waiters), f.Lock.Waiters >= 0 }),
		number("renewals", "How often the expiry was renewed in this hold: the holder's word, or as seen from outside. Not known after a single look from outside.", "lock.renewals > 1000", renewals),
		moment("last_renewal", "The last renewal: the holder's word, or as seen from outside. Not known if none was seen.", "now - lock.last_renewal > duration('5m')", lastRenewal),
		span("renew_every", "The interval of the renewals: the holder's word, learned from outside, or known of the library. Not known if none of these is.", "lock.renew_every > duration('1m')", renewEvery),
		known("claim", cel.ObjectType(claimType), 0, "What the holder wrote; see below.", "has(lock.claim)", func(f *Facts) (any, bool) { return f, f.Lock.Claim != nil }),
		known("instance", cel.ObjectType(instanceType), 0, "The heartbeat of the holder's process; see below.", "has(lock.instance)", func(f *Facts) (any, bool) { return f, f.Lock.Instance != nil }),
	}
}

func renewals(f *Facts) (int64, bool) {
	if c := f.Lock.Claim; c != nil {
		return max(c.Renewals, int64(f.Lock.History.Renewals)), true
	}
	return int64(f.Lock.History.Renewals), f.Lock.History.Looks >= 2
}

func lastRenewal(f *Facts) time.Time {
	if c := f.Lock.Claim; c != nil && c.Renewals > 0 {
		return c.Renewed
	}
	return f.Lock.History.LastRenewal
}

func renewEvery(f *Facts) (time.Duration, bool) {
	if c := f.Lock.Claim; c != nil && c.RenewEvery > 0 {
		return c.RenewEvery, true
	}
	every := cmp.Or(f.Lock.History.RenewEvery, f.Lock.RenewEvery)
	return every, every > 0
}

// The constructors below say of each kind of fact when it is not known: an
// empty name, a zero time.

func known(name string, typ *cel.Type, size uint64, doc, example string, get func(*Facts) (any, bool)) field {
	return field{name: name, typ: typ, doc: doc, example: example, size: size, get: get}
}

func text(name string, size uint64, doc, example string, get func(*Facts) string) field {
	return known(name, cel.StringType, size, doc, example, func(f *Facts) (any, bool) { return celString(get(f)), true })
}

// named is a text that is not known while it is empty.
func named(name, doc, example string, get func(*Facts) string) field {
	return known(name, cel.StringType, sizeName, doc, example, func(f *Facts) (any, bool) {
		s := get(f)
		return celString(s), s != ""
	})
}

func boolean(name, doc, example string, get func(*Facts) bool) field {
	return known(name, cel.BoolType, 0, doc, example, func(f *Facts) (any, bool) { return types.Bool(get(f)), true })
}

func number(name, doc, example string, get func(*Facts) (int64, bool)) field {
	return known(name, cel.IntType, 0, doc, example, func(f *Facts) (any, bool) {
		n, ok := get(f)
		return types.Int(n), ok
	})
}

func span(name, doc, example string, get func(*Facts) (time.Duration, bool)) field {
	return known(name, cel.DurationType, 0, doc, example, func(f *Facts) (any, bool) {
		d, ok := get(f)
		return types.Duration{Duration: d}, ok
	})
}

func moment(name, doc, example string, get func(*Facts) time.Time) field {
	return known(name, cel.TimestampType, 0, doc, example, func(f *Facts) (any, bool) {
		t := get(f)
		return celTime(t), !t.IsZero()
	})
}

func celString(s string) ref.Val  { return types.String(s) }
func celTime(t time.Time) ref.Val { return types.Timestamp{Time: t} }
