package live_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/valkey-io/valkey-go"
	"github.com/valkey-io/valkey-go/valkeylock"

	"github.com/locksteward/locksteward"
)

// locker is what both libraries are.
type locker interface {
	WithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error)
	Close()
}

func TestRueidislock(t *testing.T) {
	t.Parallel()
	testTracked(t, "rueidislock", func(addr string) (locker, error) {
		return rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: rueidis.ClientOption{InitAddress: []string{addr}}})
	})
}

func TestValkeylock(t *testing.T) {
	t.Parallel()
	testTracked(t, "valkeylock", func(addr string) (locker, error) {
		return valkeylock.NewLocker(valkeylock.LockerOption{ClientOption: valkey.ClientOption{InitAddress: []string{addr}}})
	})
}

// Three keys are one lock: with two of them gone its holder is reported at once, and
// so is who waits, both by the server's tracking.
func testTracked(t *testing.T, library string, open func(addr string) (locker, error)) {
	t.Helper()
	l := newLab(t)
	lockers := make([]locker, 2)
	for i := range lockers {
		var err error
		lockers[i], err = open(l.server.Addr())
		must(t, err)
		t.Cleanup(lockers[i].Close)
	}
	held, stop, err := lockers[0].WithContext(t.Context(), "order:42")
	must(t, err)
	defer stop()
	keys := make([]string, 3)
	for i := range keys {
		keys[i] = library + ":" + strconv.Itoa(i) + ":order:42"
		w := wants{
			key: keys[i], typ: "string", format: library,
			confidence: locksteward.ConfidenceHigh, identity: locksteward.IdentityStrong,
			ttl: 5 * time.Second, renews: 2500 * time.Millisecond,
		}
		if i < 2 { // the majority is there when the call returns; the third follows
			l.check(t, w)
		}
	}

	type answer struct {
		stop context.CancelFunc
		err  error
	}
	got := make(chan answer, 1)
	l.tries(t, "set", func() {
		go func() {
			_, stop, err := lockers[1].WithContext(t.Context(), "order:42")
			got <- answer{stop, err}
		}()
	})
	l.free(t, keys[0])
	if err := held.Err(); err != nil {
		t.Errorf("the holder was reported %v with one key of three gone, want nothing", err)
	}
	freed := l.free(t, keys[1])
	select {
	case <-held.Done():
		t.Logf("the holder knows %s after the release", time.Since(freed).Round(100*time.Microsecond))
	case <-time.After(patience):
		t.Error("the holder is not reported")
	}
	next := gets(t, freed, time.Second, got)
	must(t, next.err)
	next.stop()
}
