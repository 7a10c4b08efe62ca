package audit_test

import (
	"testing"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

func newTrail(t *testing.T, s *store.Store, cfg audit.Config, o audit.Options) *audit.Trail {
	t.Helper()
	trail, err := audit.New(zaptest.NewLogger(t), cfg, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return trail
}
