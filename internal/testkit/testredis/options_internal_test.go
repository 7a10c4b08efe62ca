package testredis

import (
	"testing"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// A user that a newer server takes is one that an older one takes as well.
func TestUsersOfOlderServers(t *testing.T) {
	const line = "user few on >pw resetkeys -@all +pttl +pexpiretime +object|idletime +memory|usage +cluster|shards %R~lock:* ~own:* resetchannels &c:* -object|idletime -pexpiretime"
	for _, c := range []struct {
		version redisproc.Version
		want    string
	}{
		{redisproc.Version{Major: 6}, "user few on >pw resetkeys -@all +pttl +memory|usage ~lock:* ~own:*"},
		{redisproc.Version{Major: 6, Minor: 2}, "user few on >pw resetkeys -@all +pttl +memory|usage ~lock:* ~own:* resetchannels &c:*"},
		{redisproc.Version{Major: 7}, line},
		{redisproc.Version{Valkey: true, Major: 8}, line},
	} {
		if got := userLineFor(c.version, line); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.version, got, c.want)
		}
	}
}
