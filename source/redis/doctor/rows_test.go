package doctor_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis/doctor"
	"github.com/locksteward/locksteward/store"
)

// What the forecast says of a row is what SQLite needs for one, give or take a
// half.
func TestRowsAreMeasured(t *testing.T) {
	t.Parallel()
	const rows = 4000
	key := func(i int) string { return fmt.Sprintf("lock:order:%029d", i) } // 40 bytes
	digest := "hmac-sha256:" + strings.Repeat("ab", 32)
	for name, tc := range map[string]struct {
		want int
		save func(st *store.Store, from, to int) error
	}{
		"hold": {doctor.HistoryRow, func(st *store.Store, from, to int) error {
			var list []scanner.HistoryRow
			for i := from; i < to; i++ {
				now := time.Now()
				list = append(list, scanner.HistoryRow{
					Target: "orders", Key: key(i), TokenDigest: digest, FirstSeen: now, LastSeen: now, LastRenewal: now,
					Renewals: 3, RenewEvery: 10 * time.Second, ExpireAt: now.UnixMilli(), ClaimID: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
				})
			}
			return st.SaveHistory(t.Context(), "orders", list, nil)
		}},
		"event": {doctor.EventRow, func(st *store.Store, from, to int) error {
			var list []store.LockEvent
			for i := from; i < to; i++ {
				list = append(list, store.LockEvent{Key: key(i), At: time.Now(), Kind: "ended", Event: `{"how":"released","held_ms":12345,"holder":{"app":"billing","host":"pod-7","pid":1,"session":"` +
					digest + `"},"token_digest":"` + digest + `"}`})
			}
			return st.SaveLockEvents(t.Context(), "orders", list)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "s.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			before, err := st.Size(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < rows; i += 500 {
				if err := tc.save(st, i, i+500); err != nil {
					t.Fatal(err)
				}
			}
			after, err := st.Size(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := int(after.Bytes-before.Bytes) / rows
			t.Logf("%d bytes a row", got)
			if got < tc.want/2 || got > tc.want*3/2 {
				t.Errorf("a row takes %d bytes, the forecast says %d", got, tc.want)
			}
		})
	}
}
