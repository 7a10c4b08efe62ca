package redis

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m}) }

// testHost is a host that knows no locks and forgets what it gets.
type testHost struct{ throttle *source.Throttle }

func (*testHost) Target() locksteward.Target                        { return locksteward.Target{Name: "t"} }
func (h *testHost) Throttle() *source.Throttle                      { return h.throttle }
func (*testHost) Len() int                                          { return 0 }
func (*testHost) Lookup(string) (source.Known, bool)                { return source.Known{}, false }
func (*testHost) Each(func(source.Known))                           {}
func (*testHost) ClockOffset(string) time.Duration                  { return 0 }
func (*testHost) SetClockOffset(string, time.Duration)              {}
func (*testHost) ClockRead(string, time.Time, time.Time, time.Time) {}
func (*testHost) SetLine(string, string)                            {}
func (*testHost) Lost(string, time.Time, bool)                      {}
func (*testHost) Alive()                                            {}
func (*testHost) RequestSweep()                                     {}
func (*testHost) Apply(context.Context, source.Batch)               {}

// bound is a source over conn whose host knows nothing.
func bound(t *testing.T, conn *connect.Conn) *Source {
	t.Helper()
	classes, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(conn, Options{Log: zap.NewNop(), Digest: locksteward.NewDigestKey()})
	if err != nil {
		t.Fatal(err)
	}
	s.Bind(&testHost{throttle: source.NewThrottle(nil)})
	s.SetClasses(classes)
	return s
}
