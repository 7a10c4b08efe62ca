package release_test

import (
	"testing"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/release"
)

func TestUndecidable(t *testing.T) {
	t.Parallel()
	one := class.Class{Name: "one", Release: class.ReleaseApprove}
	two := class.Class{Name: "two", Release: class.ReleaseApprove, Approvals: 2}
	self := class.Class{Name: "self", Release: class.ReleaseApprove, SelfApproval: class.SelfApprovalAllow}
	team := class.Class{Name: "team", Release: class.ReleaseApprove, Approvers: []string{"team:checkout"}}
	off := class.Class{Name: "off", Approvals: 9}
	for _, c := range []struct {
		what    string
		classes []class.Class
		people  []release.Actor
		want    int
	}{
		{"nobody", []class.Class{one, off}, nil, 1},
		{"one for two", []class.Class{one, two}, []release.Actor{ana, ben}, 1},
		{"two for two", []class.Class{one, two}, []release.Actor{ana, ben, cat}, 0},
		{"alone", []class.Class{one, self}, []release.Actor{eve}, 1},
		{"alone, and one who asks", []class.Class{one}, []release.Actor{eve, ana}, 0},
		{"nobody who asks", []class.Class{one}, []release.Actor{ben}, 0}, // the users' own check says it
		{"no team", []class.Class{team}, []release.Actor{ana, ben}, 1},
	} {
		if got := release.Undecidable(c.classes, c.people); len(got) != c.want {
			t.Errorf("%s: %q", c.what, got)
		}
	}
}
