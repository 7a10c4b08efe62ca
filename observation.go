package locksteward

import "time"

// NoExpiry is the TTL of a key that never expires (PTTL -1).
const NoExpiry time.Duration = -1

// NoExpireAt is the ExpireAt of a lock that never expires.
const NoExpireAt int64 = -1

// Kind separates keys that are locks from keys that only look so by name.
type Kind string

const (
	// KindLock is a lock key: a class claims it, its format was recognised with
	// high confidence, or a whole word of its name says so.
	KindLock Kind = "lock"
	// KindCandidate is a key that only a built-in name pattern matched: shown
	// and counted, never judged, never releasable.
	KindCandidate Kind = "candidate"
)

// TypeDirtyMigration is the Type of what is no lock but the mark of a schema migration that failed
// half-way: migrations wait for it as for a lock.
const TypeDirtyMigration = "dirty migration"

// Confidence is how certain it is that the library wrote the lock.
type Confidence string

const (
	// ConfidenceHigh is a structure or value that nothing else writes.
	ConfidenceHigh Confidence = "high"
	// ConfidenceMedium is a shape that fits, and others could have too.
	ConfidenceMedium Confidence = "medium"
	// ConfidenceLow is no more than "a string under a lock's name".
	ConfidenceLow Confidence = "low"
)

// Identity is how surely a hold can be distinguished from the next one of the same name.
type Identity string

const (
	// IdentityStrong is a token fresh per acquisition, or our own id.
	IdentityStrong Identity = "strong"
	// IdentityLineage is the same bytes with the same expiry.
	IdentityLineage Identity = "lineage"
	// IdentityNone is a constant value without TTL: a release and another acquire in
	// between cannot be detected.
	IdentityNone Identity = "none"
)

// AgeBasis says where a lock's age comes from.
type AgeBasis string

const (
	// AgeClaimed is the holder's own word: metadata in server time, or the time in
	// the lock's value by the holder's clock.
	AgeClaimed AgeBasis = "claimed"
	// AgeObserved is "seen for at least this long".
	AgeObserved AgeBasis = "observed"
	// AgeIdle is OBJECT IDLETIME, read before the first read of the value.
	AgeIdle AgeBasis = "idle"
	// AgeNone is "not known".
	AgeNone AgeBasis = "none"
)

// Holder is who has the lock, as far as it can be known; unknown parts are
// empty.
type Holder struct {
	App      string
	Host     string
	PID      int
	Session  string
	Instance string
}

// UnverifiedPlaceholder is the TokenKind of a lock with the mark of a placeholder that
// no release known here has put there: any client can write one.
const UnverifiedPlaceholder = "the placeholder of a release that is not known here (unverified)"

// Claim is what the holder itself wrote beside the lock (lock/record), already
// checked to belong to this incarnation. Zero times and durations are "not
// said".
type Claim struct {
	Version       int
	ID            string
	Class         string
	Purpose       string
	Acquired      time.Time
	Renewed       time.Time // acquire or last successful renewal
	Progress      time.Time
	TTL           time.Duration
	RenewEvery    time.Duration // 0: this holder does not renew
	Expect        time.Duration
	MaxHold       time.Duration
	Renewals      int64
	RenewFailures int64
	Fence         int64
	Holds         int64
	Trace         string
	// Session is the logical thread of work that holds the lock; the holder's id
	// where the application named none. Holding are the other locks that it held
	// when it took this one, exact bytes.
	Session string
	Holding []string
	// EndsWithHeartbeat: the holder gives up when it cannot keep its heartbeat
	// (lock.Options.EndWithHeartbeat).
	EndsWithHeartbeat bool
}

// Deadline returns when the lease of the claim runs out, zero if it does not say.
func (c Claim) Deadline() time.Time {
	if c.Renewed.IsZero() || c.TTL == 0 {
		return time.Time{}
	}
	return c.Renewed.Add(c.TTL)
}

// Observation is what one look saw of one key.
type Observation struct {
	Target string
	DB     int
	Node   string // address of the master it was read from
	Key    string // exact bytes
	Type   string // as TYPE says: string, hash, ...

	At       time.Time     // server time of the look
	Lifetime Lifetime      // with which it was seen
	TTL      time.Duration // NoExpiry for none
	ExpireAt int64         // ms since 1970, server time; NoExpireAt for none; 0 not known
	Idle     time.Duration // OBJECT IDLETIME before the first value read; negative: not known

	// Size is bytes of a string, members of any other type. TooLarge says that
	// the value was not read in full, so the key is never releasable.
	Size     int64
	TooLarge bool

	Kind       Kind
	Class      string // "default" when no configured class claims it
	Configured bool   // a configured class claims the key
	Library    string
	Confidence Confidence
	Identity   Identity
	// TokenDigest is DigestKey.Value or DigestKey.Fields of what was read; "" if
	// the value was not read in full.
	TokenDigest string
	// SharedToken says that the token is a constant or names a host or process,
	// so that any client could release the lock; TokenKind says which, in words
	// that do not give the token away ("a one-digit number"). It may be
	// [UnverifiedPlaceholder].
	SharedToken bool
	TokenKind   string
	// Acquired is when the lock was taken as its value says, by the clock of who
	// wrote it; zero if it does not say. Asked says that it is when the holder asked
	// for the lock, for which it may have waited since. [Lock.Age] says what is
	// believed of it; a holder that writes metadata says it there (Claim).
	Acquired time.Time
	Asked    bool
	// Mode is "read" or "write" of a lock that has both; "" of any other.
	Mode string

	Holder Holder
	Count  int64 // re-entrancy, 1 if the library has none
	Fence  int64 // 0: none
	// RenewEvery is the interval known of the library's watchdog, as it is unless
	// configured; 0: none known. A holder that says its own says it in Claim.
	RenewEvery time.Duration
	// Waiters is how many wait; negative when the library cannot tell.
	Waiters int
	Claim   *Claim // nil unless valid metadata stands beside the lock

	// Instance is the heartbeat of the claim's process; nil if the lock names no
	// instance or its key is gone.
	Instance *Instance

	// Session keeps the lock; nil of a lock that does not end with a session, and where
	// nothing is known of it.
	Session *Session

	// Absence is that nobody is connected to the store from the holder's address; nil where
	// somebody is, and where that cannot be known.
	Absence *Absence
}

// NeverExpires reports whether nothing but a release will end the lock. A lock that ends with
// a session has no TTL, and ends all the same.
func (o *Observation) NeverExpires() bool {
	return o.TTL == NoExpiry && o.Lifetime != LifetimeSession
}

// Absence is that no session comes from the address that a lock names as its holder's.
type Absence struct {
	// From is the address.
	From string
	// Since is when a complete look first found no session, server time; Looks is how many looks
	// in a row did.
	Since time.Time
	Looks int
}

// SessionState is what the holder's session does.
type SessionState string

const (
	// SessionActive is a session whose server works on a statement of it.
	SessionActive SessionState = "active"
	// SessionIdle is a session that waits for its client outside of a transaction.
	SessionIdle SessionState = "idle"
	// SessionInTransaction is a session that waits for its client inside of a transaction.
	SessionInTransaction SessionState = "in transaction"
)

// Session is the connection or session with which a lock ends: a PostgreSQL backend, a
// MySQL connection, a ZooKeeper session.
type Session struct {
	// ID is how the store names it; unique within one start of the server.
	ID string
	// Thread is the Waiter.Session of who waits in this session, unique over all targets: a
	// session that waits does nothing else, so that it waits with all its locks. "" of a store
	// whose sessions may do several things at a time.
	Thread string
	// User is who logged in; Addr is the client's address, without a port. Either may be "".
	User, Addr string
	// Since is when it began, server time; zero: not known.
	Since time.Time
	// State is what it does, "" where that is not known or the store has none, and StateSince
	// since when, server time.
	State      SessionState
	StateSince time.Time
	// Locks are the names of the other locks that end with it, sorted.
	Locks []string
}

// Instance is a process that uses the lock library, from its heartbeat key.
type Instance struct {
	ID      string
	App     string
	Host    string
	PID     int
	Started time.Time
	// Beat is when the heartbeat was last written, from the TTL left on its key.
	Beat time.Time
	// Slot is a name that one live process has at a time, as declared; "" for
	// none.
	Slot string
	// Counts are what the process says it has done, by class of its locks: lower
	// bounds that only grow; nil if it says nothing.
	Counts map[string]Counts
}

// Counts are what one process did with the locks of one class since its start.
type Counts struct {
	Acquired      int64
	Failed        int64 // acquires that ended without the lock
	Contended     int64 // acquires that found another holder first
	Renewed       int64
	RenewFailures int64
	Lost          int64 // holds that ended before their release
}

// Waiter is one call that waits for a lock of ours, from its record.
type Waiter struct {
	Target string
	DB     int
	Key    string // the lock it waits for, exact bytes
	Class  string
	ID     string // of the acquisition it wants
	// Session is the logical thread of work, which may hold other locks; ""
	// where the application named none.
	Session  string
	Instance string
	// App, Host and PID are of its process, as its record says; zero for not said.
	App   string
	Host  string
	PID   int
	Since time.Time // arrival, server time
	// Until is how long its record is believed: past this it is dead unless it
	// writes again.
	Until time.Time
}

// Who returns who waits, as a holder is named.
func (w Waiter) Who() Holder {
	return Holder{App: w.App, Host: w.Host, PID: w.PID, Session: w.Session, Instance: w.Instance}
}

// Lifetime is what ends a lock by itself.
type Lifetime string

const (
	// LifetimeLease is a lock that ends when it is not renewed: a Redis key with a TTL, an etcd
	// lease.
	LifetimeLease Lifetime = "lease"
	// LifetimeSession is a lock that ends with the connection or session of its holder: a
	// PostgreSQL advisory lock.
	LifetimeSession Lifetime = "session"
	// LifetimePersistent is a lock that never ends by itself: a Redis key without a TTL, a row of
	// a lock table.
	LifetimePersistent Lifetime = "persistent"
)
