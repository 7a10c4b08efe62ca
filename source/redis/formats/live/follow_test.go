package live_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

// stand is how long what takes a lock's place stays.
const stand = time.Minute

// act carries out a request on the lock as it stands now, with what change says.
func (l lab) act(t *testing.T, key string, change func(*locksteward.Evidence)) locksteward.Request {
	t.Helper()
	lock, ok := l.see(t, key)
	if !ok {
		t.Fatalf("the scanner does not see %q", key)
	}
	r := requestOf(lock)
	r.Evidence.Undo = time.Minute
	change(&r.Evidence)
	l.carryOut(t, r, locksteward.RequestReleased)
	return r
}

// follow undoes or lifts what of did.
func (l lab) follow(t *testing.T, of locksteward.Request, act locksteward.Act, want locksteward.RequestState) {
	t.Helper()
	r := of
	r.ID = newID()
	r.Evidence.Act, r.Evidence.Of = act, of.ID
	if act == locksteward.ActUndo {
		r.Evidence.Undo, r.Evidence.Placeholder = 0, 0
	}
	l.carryOut(t, r, want)
}

func (l lab) carryOut(t *testing.T, r locksteward.Request, want locksteward.RequestState) {
	t.Helper()
	executor, err := releaser.New(releaser.Config{Connect: l.connect(), Digest: l.digest})
	must(t, err)
	result, err := executor.Release(t.Context(), r)
	must(t, err)
	if result.State != want {
		t.Fatalf("%s of %q: %s, %s %v, want %s", r.Evidence.Act, r.Evidence.Key, result.State, result.Reason, result.Differences, want)
	}
}

func takeOver(e *locksteward.Evidence) { e.Act, e.Placeholder = locksteward.ActTakeOver, stand }

func lockDelay(e *locksteward.Evidence) { e.Placeholder = stand }

func nothing(*locksteward.Evidence) {}

// mutex is one handle of a lock library: of its holder or of another client.
type mutex interface {
	// acquire tries once.
	acquire() (bool, error)
	// renew and release say whether the library found its own lock.
	renew() (bool, error)
	release() (bool, error)
}

type redsyncMutex struct {
	t *testing.T
	*redsync.Mutex
}

func (m redsyncMutex) acquire() (bool, error) {
	err := m.TryLockContext(m.t.Context())
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken || errors.Is(err, redsync.ErrFailed) {
		return false, nil
	}
	return err == nil, err
}

func (m redsyncMutex) renew() (bool, error) { return own(m.ExtendContext(m.t.Context())) }

func (m redsyncMutex) release() (bool, error) { return own(m.UnlockContext(m.t.Context())) }

// own takes it that the lock is another's for no.
func own(ok bool, err error) (bool, error) {
	_, taken := errors.AsType[*redsync.ErrTaken](err)
	if taken || errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.Is(err, redsync.ErrExtendFailed) {
		return false, nil
	}
	return ok, err
}

type redislockMutex struct {
	t      *testing.T
	client *redislock.Client
	key    string
	lock   *redislock.Lock
}

func (m *redislockMutex) acquire() (bool, error) {
	lock, err := m.client.Obtain(m.t.Context(), m.key, time.Minute, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	m.lock = lock
	return err == nil, err
}

func (m *redislockMutex) renew() (bool, error) {
	err := m.lock.Refresh(m.t.Context(), time.Minute, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	return err == nil, err
}

func (m *redislockMutex) release() (bool, error) {
	err := m.lock.Release(m.t.Context())
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return false, nil
	}
	return err == nil, err
}

// mutexes makes handles of each library that is tried, on a key.
var mutexes = map[string]func(t *testing.T, l lab, key string) mutex{
	"redsync": func(t *testing.T, l lab, key string) mutex {
		return redsyncMutex{t, redsync.New(goredis.NewPool(l.client)).NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(time.Minute))}
	},
	"bsm-redislock": func(t *testing.T, l lab, key string) mutex {
		return &redislockMutex{t: t, client: redislock.New(l.client), key: key}
	},
}

// expect wants an answer of a library.
func expect(t *testing.T, what string, want bool, f func() (bool, error)) {
	t.Helper()
	if got, err := f(); err != nil || got != want {
		t.Errorf("%s: %t, %v, want %t", what, got, err, want)
	}
}

// TestUndoGivesTheHolderItsLockBack: with the library's own eyes. After an undo,
// of a release or of a take-over, its first holder renews and releases as if
// nothing had happened, and nobody else gets the lock before.
func TestUndoGivesTheHolderItsLockBack(t *testing.T) {
	t.Parallel()
	for name, newMutex := range mutexes {
		for what, change := range map[string]func(*locksteward.Evidence){"release": nothing, "take-over": takeOver, "lock-delay": lockDelay} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				const key = "lock:order:42"
				holder, other := newMutex(t, l, key), newMutex(t, l, key)
				expect(t, "the first acquire", true, holder.acquire)
				before := testredis.ExpireAt(t, l.client, key)
				of := l.act(t, key, change)
				expect(t, "renewal of what was taken away", false, holder.renew)
				l.follow(t, of, locksteward.ActUndo, locksteward.RequestReleased)
				if at := testredis.ExpireAt(t, l.client, key); at != before {
					t.Errorf("it expires at %d, want %d", at, before)
				}
				expect(t, "acquire by another after the undo", false, other.acquire)
				expect(t, "renewal after the undo", true, holder.renew)
				expect(t, "release after the undo", true, holder.release)
				expect(t, "acquire by another after that", true, other.acquire)
				// Once is once.
				l.follow(t, of, locksteward.ActUndo, locksteward.RequestAlreadyGone)
				expect(t, "release by the other", true, other.release)
			})
		}
	}
}

// TestNobodyGetsALockThatWasTakenOver: while a take-over or a lock-delay stands,
// the library's acquire fails, for its old holder too; what the old holder does
// leaves it alone; and once it is lifted the next acquire succeeds.
func TestNobodyGetsALockThatWasTakenOver(t *testing.T) {
	t.Parallel()
	for name, newMutex := range mutexes {
		for what, change := range map[string]func(*locksteward.Evidence){"take-over": takeOver, "lock-delay": lockDelay} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				const key = "lock:order:42"
				holder, next := newMutex(t, l, key), newMutex(t, l, key)
				expect(t, "the first acquire", true, holder.acquire)
				of := l.act(t, key, change)
				before := l.client.Get(t.Context(), key).Val()
				expect(t, "acquire by another", false, next.acquire)
				expect(t, "acquire by another once more", false, newMutex(t, l, key).acquire)
				expect(t, "renewal by the old holder", false, holder.renew)
				expect(t, "release by the old holder", false, holder.release)
				if got := l.client.Get(t.Context(), key).Val(); got != before || got == "" {
					t.Errorf("what stands there was touched: %q, want %q", got, before)
				}
				l.follow(t, of, locksteward.ActLift, locksteward.RequestReleased)
				expect(t, "acquire after the lift", true, next.acquire)
				// The next holder's lock is none of the take-over's business.
				l.follow(t, of, locksteward.ActLift, locksteward.RequestChanged)
				l.follow(t, of, locksteward.ActUndo, locksteward.RequestChanged)
				expect(t, "renewal by the next holder", true, next.renew)
				expect(t, "release by the next holder", true, next.release)
			})
		}
	}
}

func newID() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

// requestOf is a request for the release of a lock as it was seen.
func requestOf(lock locksteward.Lock) locksteward.Request {
	return locksteward.Request{
		ID: newID(),
		Evidence: locksteward.Evidence{
			Target: lock.Target, DB: lock.DB, Key: lock.Key, Class: lock.Class, Library: lock.Library, Type: lock.Type,
			Identity: lock.Identity, TokenDigest: lock.TokenDigest, ExpireAt: lock.ExpireAt, Count: lock.Count,
			Holder: lock.Holder, Fence: lock.Fence, At: lock.At,
		},
	}
}
