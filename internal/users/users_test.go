package users

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func hexSum(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func TestAddThenAuthenticate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "users.yaml")
	ann, err := Add(path, "ann", []Role{RoleRequester})
	if err != nil {
		t.Fatal(err)
	}
	bob, err := Add(path, "bob", []Role{RoleApprover, RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []locksteward.Secret{ann, bob} {
		if !strings.HasPrefix(token.Reveal(), TokenPrefix) || len(token.Reveal()) != len(TokenPrefix)+43 {
			t.Errorf("token has %d characters", len(token.Reveal()))
		}
		if strings.Contains(string(raw), token.Reveal()) {
			t.Error("the file holds a token in clear")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	set, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := set.Authenticate(ann.Reveal()); !ok || u.Name != "ann" || !u.Can(VerbRequest) || u.Can(VerbApprove) {
		t.Errorf("ann is %+v, %v", u, ok)
	}
	if u, ok := set.Authenticate(bob.Reveal()); !ok || u.Name != "bob" || !u.Can(VerbApprove) || !u.Can(VerbAdmin) || u.Can(VerbRequest) {
		t.Errorf("bob is %+v, %v", u, ok)
	}
	for _, wrong := range []string{"", "lsu_", ann.Reveal() + "x", strings.ToUpper(ann.Reveal()), hexSum(ann.Reveal())} {
		if u, ok := set.Authenticate(wrong); ok {
			t.Errorf("a wrong token is %q", u.Name)
		}
	}
}

func TestRolesGrantExactly(t *testing.T) {
	t.Parallel()
	want := map[Role]string{
		RoleViewer: "view", RoleRequester: "view request", RoleApprover: "view approve silence", RoleAdmin: "view admin silence",
		RoleBreakGlass: "view break-glass",
	}
	for _, r := range Roles() {
		var got []string
		for _, v := range []Verb{VerbView, VerbRequest, VerbApprove, VerbAdmin, VerbSilence, VerbBreakGlass} {
			if (User{Name: "x", Roles: []Role{r}}).Can(v) {
				got = append(got, string(v))
			}
		}
		if strings.Join(got, " ") != want[r] {
			t.Errorf("%s can %v, want %s", r, got, want[r])
		}
	}
	if (User{}).Can(VerbView) {
		t.Error("nobody may view")
	}
	if RoleFor(VerbApprove) != RoleApprover || RoleFor(VerbAdmin) != RoleAdmin {
		t.Error("RoleFor names another role")
	}
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.yaml")
	if _, err := Add(path, "ann", []Role{RoleViewer}); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	for name, c := range map[string]struct {
		user  string
		roles []Role
		want  error
	}{
		"duplicate":      {"ann", []Role{RoleViewer}, locksteward.ErrConflict},
		"case duplicate": {"ANN", []Role{RoleViewer}, nil},
		"bad name":       {"a b\n", []Role{RoleViewer}, locksteward.ErrInvalid},
		"no role":        {"bob", nil, locksteward.ErrInvalid},
		"bad role":       {"bob", []Role{"root"}, locksteward.ErrInvalid},
	} {
		token, err := Add(path, c.user, c.roles)
		if err == nil || token != "" || (c.want != nil && !errors.Is(err, c.want)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	after, _ := os.ReadFile(path)
	if string(before) != string(after) {
		t.Errorf("a refused Add changed the file:\n%s", after)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused Add left its temporary file: %v", err)
	}
}

func TestAddKeepsCommentsAndRefusesBrokenFiles(t *testing.T) {
	t.Parallel()
	path := write(t, "# our people\nusers:\n  # on call\n  - name: ann\n    roles: [viewer]\n    token_sha256: ["+hexSum("t")+"]\n")
	if _, err := Add(path, "bob", []Role{RoleApprover}); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(path)
	for _, want := range []string{"# our people", "# on call", "name: ann", "name: bob"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is missing in\n%s", want, raw)
		}
	}
	broken := write(t, "users: [{name: ann, rolls: [viewer]}]\n")
	if _, err := Add(broken, "bob", []Role{RoleApprover}); err == nil || !strings.Contains(err.Error(), "rolls") {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"", "users:\n", "users: []\n", "# only a comment\n"} {
		path := write(t, text)
		if _, err := Add(path, "bob", []Role{RoleApprover}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if set, err := Load(path); err != nil || set.Len() != 1 {
			t.Errorf("%q: %d users, %v", text, set.Len(), err)
		}
	}
}

func TestConcurrentAddLosesNobody(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.yaml")
	var added atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := Add(path, fmt.Sprintf("user%d", i), []Role{RoleViewer})
			switch {
			case err == nil:
				added.Add(1)
			case !errors.Is(err, locksteward.ErrConflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	set, err := Load(path)
	if err != nil || int64(set.Len()) != added.Load() || added.Load() == 0 {
		t.Errorf("%d users in the file, %d added, %v", set.Len(), added.Load(), err)
	}
}

func TestLoadReportsAllProblems(t *testing.T) {
	t.Parallel()
	token, _ := NewToken()
	path := write(t, `users:
  - {name: "a b", roles: [boss], token_sha256: [`+token.Reveal()+`]}
  - {name: ann, roles: [], token_sha256: [zz], password_hash: plain-password}
  - {name: Ann, roles: [viewer]}
`)
	_, err := Load(path)
	if err == nil {
		t.Fatal("loaded")
	}
	for _, want := range []string{
		"users[0].name", "users[0].roles[0]", `"boss"`, "users[0].token_sha256[0]: holds a token in clear",
		"users[1].roles", "users[1].token_sha256[0]", "users[1].password_hash: is neither", "users[2].name", "users[2]: has neither",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	for _, secret := range []string{token.Reveal(), "plain-password"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q", secret)
		}
	}
}

func TestLoadIsStrict(t *testing.T) {
	t.Parallel()
	_, err := Load(write(t, "users:\n  - {name: a, roles: [viewer], password_bcrypt: x}\n"))
	if want := "line 2: unknown key password_bcrypt: a user has name, roles, teams"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	for name, text := range map[string]string{
		"unknown key":    "users: []\nextra: 1\n",
		"list":           "- name: ann\n",
		"two documents":  "users: []\n---\nusers: []\n",
		"twice the same": "users:\n  - {name: a, roles: [viewer], token_sha256: [" + hexSum("t") + "]}\n  - {name: b, roles: [viewer], token_sha256: [" + hexSum("t") + "]}\n",
	} {
		if _, err := Load(write(t, text)); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	shared := write(t, "users: []\n")
	if err := os.Chmod(shared, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(shared); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may write: %v", err)
	}
	for _, path := range []string{"", filepath.Join(t.TempDir(), "absent.yaml")} {
		if set, err := Load(path); err != nil || set.Len() != 0 {
			t.Errorf("%q: %d users, %v", path, set.Len(), err)
		}
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	token, digest := NewToken()
	set, err := Load(write(t, "users:\n  - {name: ann, roles: [viewer], password_hash: '"+string(hash)+"'}\n  - {name: bob, roles: [viewer], token_sha256: ["+digest+"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"ann", "correct horse", true},
		{"ann", "wrong", false},
		{"ann", "", false},
		{"bob", token.Reveal(), true},
		{"ann", token.Reveal(), false},
		{"bob", "correct horse", false},
		{"eve", "correct horse", false},
		{"", "", false},
	} {
		u, mark, err := set.AuthenticatePassword(t.Context(), c.name, c.password)
		if (err == nil) != c.want || err == nil && (u.Name != c.name || !set.HasProof(c.name, mark)) || err != nil && !errors.Is(err, ErrNoMatch) {
			t.Errorf("%q: got %q, %v; want %v", c.name, u.Name, err, c.want)
		}
	}
}

// The stand-in for unknown names must be a hash that bcrypt works on, or an
// unknown name would be reported by its speed.
func TestUnknownNameIsHashedToo(t *testing.T) {
	t.Parallel()
	if cost, err := bcrypt.Cost(unknownUser); err != nil || cost != bcrypt.DefaultCost {
		t.Errorf("cost %d, %v", cost, err)
	}
	if err := bcrypt.CompareHashAndPassword(unknownUser, []byte("x")); !errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
		t.Errorf("got %v", err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	set := func(users ...User) *Set {
		var accounts []account
		for _, u := range users {
			accounts = append(accounts, account{user: u})
		}
		return newSet(accounts)
	}
	for name, c := range map[string]struct {
		set  *Set
		want string
	}{
		"nobody":       {set(), ""},
		"two people":   {set(User{Name: "a", Roles: []Role{RoleRequester}}, User{Name: "b", Roles: []Role{RoleApprover}}), ""},
		"no approver":  {set(User{Name: "a", Roles: []Role{RoleRequester}}), "nobody can ever approve"},
		"no requester": {set(User{Name: "a", Roles: []Role{RoleApprover}}), "nobody can request"},
		"one person":   {set(User{Name: "a", Roles: []Role{RoleRequester, RoleApprover}}), "only requester is the only approver"},
	} {
		got := strings.Join(c.set.Warnings(), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
