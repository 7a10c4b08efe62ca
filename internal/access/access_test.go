package access_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/access"
	"github.com/locksteward/locksteward/internal/users"
)

func load(t *testing.T, text string) *users.Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := users.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const people = `users:
  - {name: ana, roles: [requester], external: true}
  - {name: bo, roles: [approver], teams: [checkout], external: true}
  - {name: cy, roles: [approver, requester], external: true}
  - {name: dee, roles: [break-glass], external: true}
  - {name: off, roles: [approver, requester, break-glass], teams: [checkout], disabled: true, external: true}
`

func TestReport(t *testing.T) {
	t.Parallel()
	classes := []class.Class{
		{Name: "orders", Match: []string{"o:*"}, Release: class.ReleaseApprove, Approvers: []string{"team:checkout"}},
		{Name: "hard", Match: []string{"h:*"}, Release: class.ReleaseApprove, Approvals: 3},
		{Name: "kept", Match: []string{"k:*"}},
	}
	got := access.New(classes, load(t, people))
	var lines []string
	for _, c := range got.Classes {
		lines = append(lines, strings.Join([]string{c.Class, c.Release, strings.Join(c.Requesters, ","), strings.Join(c.Approvers, ","), strings.Join(c.BreakGlass, ",")}, " "))
	}
	want := []string{"orders approve ana,cy bo dee", "hard approve ana,cy bo,cy dee", "kept off   "}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], `class "hard": approvals needed 3, people who may approve 2`) {
		t.Errorf("warnings %q", got.Warnings)
	}
	if len(got.Users) != 5 || !got.Users[4].Disabled || got.Users[1].Teams[0] != "checkout" {
		t.Errorf("users %+v", got.Users)
	}
	if w := access.Undecidable(classes, load(t, "users: []\n")); w != nil {
		t.Errorf("without users: %q", w)
	}
}
