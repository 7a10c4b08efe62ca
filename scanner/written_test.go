package scanner_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// What a value says of its time and mode is reported by a sweep, kept in the table, and
// counts as the age where nothing speaks against it.
func TestSweepTellsWhatTheValueSays(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	s := fast(srv.URL()).build(t)
	const uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
	taken := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
	must(t, c.Set(t.Context(), "job-lock:default:report", "ADDED:"+taken.Format("2006-01-02T15:04:05.000Z")+"@web-3:"+uuid, 10*time.Minute).Err())
	must(t, c.Set(t.Context(), "lock:py", "c232ab00941411f0b3deb2de8f0d1c7a", time.Minute).Err())
	must(t, c.HSet(t.Context(), "lock:rw", "mode", "write", uuid+":37:write", "1").Err())
	got := map[string]locksteward.Lock{}
	for _, l := range sweep(t, s).Locks {
		got[l.Key] = l
	}
	job := got["job-lock:default:report"]
	if job.Library != "shedlock" || !job.Acquired.Equal(taken) || job.Asked || job.Mode != "" {
		t.Errorf("ShedLock: %+v", job.Observation)
	}
	if age, basis, minimum := job.Age(); basis != locksteward.AgeClaimed || !minimum || age < time.Hour || age > time.Hour+time.Minute {
		t.Errorf("ShedLock: age %s, %s, %v", age, basis, minimum)
	}
	if py := got["lock:py"]; !py.Asked || py.Acquired.IsZero() {
		t.Errorf("redis-py: %+v", py.Observation)
	} else if age, basis, _ := py.Age(); basis == locksteward.AgeClaimed || age > time.Minute {
		t.Errorf("redis-py: age %s, %s; its token is drawn before it waits", age, basis)
	}
	if rw := got["lock:rw"]; rw.Mode != "write" || !rw.Acquired.IsZero() {
		t.Errorf("read/write lock: %+v", rw.Observation)
	}
	if again, ok := s.Table().Get(0, "job-lock:default:report"); !ok || !again.Acquired.Equal(taken) {
		t.Errorf("in the table: %+v", again.Observation)
	}
}
