package releaser_test

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

// Rights that do not cover a lock show before anybody approves, with the name of the user, and what nobody can
// tell is no reason to say anything.
func TestPreviewNamesMissingRights(t *testing.T) {
	t.Parallel()
	all := strings.Join(releaser.ACL([]string{"lock:*"}, nil), " ")
	for name, tc := range map[string]struct {
		rules string // of the user releaser
		found bool
		want  string
	}{
		"all that acl prints": {rules: all, found: true},
		"another pattern": {
			rules: strings.Join(releaser.ACL([]string{"other:*"}, nil), " "),
			want:  `the Redis user releaser may not read "lock:a"`,
		},
		"the lock without what is beside it": {
			rules: "allcommands ~lock:*", found: true, want: `the Redis user releaser may not write "lock:a", or use the keys beside it`,
		},
		"no scripts": {rules: all + " -eval", found: true, want: "the Redis user releaser may not run EVAL"},
		"no reading": {rules: all + " -type", want: "the Redis user releaser may not run TYPE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, testredis.WithACL("releaser on >"+releaserPassword+" resetkeys "+tc.rules))
			if err := srv.Client(t).Set(t.Context(), "lock:a", uuid, 0).Err(); err != nil {
				t.Fatal(err)
			}
			admin, err := releaser.New(releaser.Config{Connect: connect.Config{URL: srv.URL()}})
			if err != nil {
				t.Fatal(err)
			}
			frozen, _, err := admin.Read(t.Context(), "lock:a")
			if err != nil {
				t.Fatal(err)
			}
			seen, err := newReleaser(t, srv.URL(), locksteward.DigestKey{}).Preview(t.Context(), locksteward.Request{ID: "r-1", Evidence: frozen})
			if err != nil || seen.Found != tc.found || tc.want == "" != (seen.MissingRights == "") || !strings.HasPrefix(seen.MissingRights, tc.want) {
				t.Errorf("found %t, missing rights %q, %v", seen.Found, seen.MissingRights, err)
			}
		})
	}
}
