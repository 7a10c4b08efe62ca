package acl_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/acl"
)

// running is the version of the server that the tests have; tests for servers whose
// ACLs cannot say what is needed are skipped.
func running(t *testing.T) acl.Version {
	t.Helper()
	v, err := acl.ParseVersion(testredis.Version(t).String())
	if err != nil {
		t.Skip(err)
	}
	return v
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m}) }
