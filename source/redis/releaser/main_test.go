package releaser_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m}) }

const (
	releaserPassword = "releaser-pw"
	uuid             = "0f8e4c2a-93b1-4d77-a2f5-6b1c9d0e3f48"
	redissonField    = uuid + ":42"
	minute           = 60_000
)

// releaserLine is the user with no more rights than we document.
func releaserLine() string {
	rules := releaser.ACL([]string{"lock:*", "{lock}:*"}, nil)
	return "releaser on >" + releaserPassword + " resetkeys " + strings.Join(rules, " ")
}

func newReleaser(t testing.TB, url string, digest locksteward.DigestKey) *releaser.Releaser {
	t.Helper()
	r, err := releaser.New(releaser.Config{
		Connect: connect.Config{URL: url, Username: "releaser", Password: releaserPassword, ReadTimeout: 10 * time.Second},
		Digest:  digest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
