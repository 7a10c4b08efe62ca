package api_test

import (
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// A finding that is over is reported by why it is, in each language.
func TestSummaryOfResolvedFinding(t *testing.T) {
	t.Parallel()
	f := locksteward.Finding{
		Status: locksteward.StatusFiring, Summary: locksteward.Literal("lock a has no TTL", "没有过期时间"),
		Resolution: locksteward.Literal("released", "已释放"),
	}
	if s := api.NewFinding(f, "en").Summary; s != "lock a has no TTL" {
		t.Errorf("firing: %q", s)
	}
	f.Status = locksteward.StatusResolved
	if en, zh := api.NewFinding(f, "en").Summary, api.NewFinding(f, "zh").Summary; en != "released" || zh != "已释放" {
		t.Errorf("resolved: %q, %q", en, zh)
	}
}
