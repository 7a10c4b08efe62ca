package users

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward"
)

// cheap is an argon2id hash that is checked quickly.
func cheap(password string) string {
	salt := []byte("0123456789abcdef")
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=1,p=1$%s$%s", argonMinMemory, enc.EncodeToString(salt),
		enc.EncodeToString(argon2.IDKey([]byte(password), salt, 1, argonMinMemory, 1, 32)))
}

func TestHashPassword(t *testing.T) {
	t.Parallel()
	const password = "correct horse battery"
	one, err := HashPassword(password)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(one.Reveal(), "$argon2id$v=19$m=32768,t=3,p=1$") {
		t.Errorf("got %q", one.Reveal())
	}
	h, err := parseHash(one.Reveal())
	if err != nil || !h.matches(password) || h.matches(password+" ") || h.scheme() != "argon2id" {
		t.Errorf("its own hash: %v", err)
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", maxPassword+1)} {
		if _, err := HashPassword(locksteward.Secret(bad)); !errors.Is(err, locksteward.ErrInvalid) || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
}

// The hash of another implementation: the example of the argon2 command line.
// echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1
func TestHashOfAnotherProgram(t *testing.T) {
	t.Parallel()
	const other = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	h, err := parseHash(other)
	if err != nil || !h.matches("password") || h.matches("Password") {
		t.Errorf("got %v", err)
	}
}

// A file cannot make the agent burn the machine, and what it says of a bad hash
// does not show it.
func TestHashesAreBounded(t *testing.T) {
	t.Parallel()
	with := func(params string) string {
		return "$argon2id$v=19$" + params + "$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	}
	if _, err := parseHash(with("m=7168,t=5,p=1")); err != nil {
		t.Errorf("a good one: %v", err)
	}
	slow, err := bcrypt.GenerateFromPassword([]byte("x"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		with("m=131073,t=1,p=1"), with("m=4294967295,t=1,p=1"), with("m=99999999999,t=1,p=1"), with("m=8192,t=0,p=1"), with("m=8192,t=11,p=1"),
		with("m=131072,t=5,p=1"), with("m=8192,t=1,p=0"), with("m=8192,t=1,p=9"), with("m=8192,t=1,p=300"), with("m=64,t=1,p=1"),
		with("m=-1,t=1,p=1"), with("t=1,m=8192,p=1"), with("m=8192,t=1"),
		"$argon2id$v=16$m=8192,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA", "$argon2i$v=19$m=8192,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=8192,t=1,p=1$c2FsdA$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=8192,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAA",
		"$argon2id$v=19$m=8192,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAA=",
		"$argon2id$v=19$m=8192,t=1,p=1$$", "", "hunter2", strings.Replace(string(slow), "$04$", "$15$", 1), strings.Replace(string(slow), "$04$", "$31$", 1),
	} {
		if _, err := parseHash(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(cheap("x"))
	f.Add("$argon2id$v=19$m=1,t=1,p=1$$")
	f.Add("$2a$10$7EqJtq98hPqEX7fNZaFWoOhi5u2r3u3vL8cFXcjqB5uqBqv8l3K1u")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHash(text)
		if err == nil && h.argon != nil && (h.argon.memory > argonMaxMemory || uint64(h.argon.memory)*uint64(h.argon.passes) > argonMaxWork || h.argon.lanes == 0) {
			t.Errorf("%q is beyond the bounds", text)
		}
	})
}

// Two check at once; who waits longer than they like is informed that it is busy, and
// a password that was right stays right.
func TestFewPasswordsAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	set, err := Load(write(t, "users:\n  - {name: ann, roles: [viewer], password_hash: '"+cheap("correct horse")+"'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for range checksAtOnce {
		set.checking <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if _, _, err := set.AuthenticatePassword(ctx, "ann", "correct horse"); !errors.Is(err, ErrBusy) {
				t.Errorf("while others are checked: %v", err)
			}
		})
	}
	cancel()
	group.Wait()
	<-set.checking
	if _, _, err := set.AuthenticatePassword(t.Context(), "ann", "correct horse"); err != nil {
		t.Error(err)
	}
}

// An unknown name is checked like one of the others, always like the same.
func TestUnknownNamesLookLikeOthers(t *testing.T) {
	t.Parallel()
	one, two := cheap("first password"), cheap("other password")
	two = strings.Replace(two, "t=1", "t=2", 1)
	set, err := Load(write(t, "users:\n  - {name: ann, roles: [viewer], password_hash: '"+one+"'}\n  - {name: bo, roles: [viewer], password_hash: '"+two+"'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i := range 100 {
		name := fmt.Sprintf("nobody%d", i)
		h := set.decoyHash(name)
		if again := set.decoyHash(name); again.text != h.text {
			t.Fatal("a name's stand-in changes")
		}
		seen[h.text]++
	}
	if len(seen) != 2 || seen[one] < 20 || seen[two] < 20 {
		t.Errorf("stand-ins: %v", seen)
	}
	// The password of the stand-in opens nothing.
	for i := range 4 {
		for _, password := range []string{"first password", "other password"} {
			if _, _, err := set.AuthenticatePassword(t.Context(), fmt.Sprintf("nobody%d", i), password); !errors.Is(err, ErrNoMatch) {
				t.Fatalf("nobody%d is let in: %v", i, err)
			}
		}
	}
}

func TestDisabledUsersCanDoNothing(t *testing.T) {
	t.Parallel()
	path := write(t, "# people\nusers:\n  # on call\n  - {name: ann, roles: [viewer], password_hash: '"+cheap("correct horse")+"'}\n")
	token, err := AddUser(path, NewUser{Name: "bo", Roles: []Role{RoleApprover}, Teams: []string{"checkout", "/eu/ops"}})
	if err != nil {
		t.Fatal(err)
	}
	set, _ := Load(path)
	_, mark, err := set.AuthenticatePassword(t.Context(), "ann", "correct horse")
	if err != nil || !set.HasProof("ann", mark) || set.HasProof("bo", mark) {
		t.Errorf("before: %v", err)
	}
	if bo, ok := set.Find("BO"); !ok || bo.Tokens != 1 || bo.Password != "" || len(bo.Teams) != 2 || bo.Disabled {
		t.Errorf("bo is %+v", bo)
	}
	for _, name := range []string{"ann", "bo"} {
		for i := range 2 {
			if changed, err := SetDisabled(path, name, true); err != nil || changed != (i == 0) {
				t.Errorf("disable %s: %v, %v", name, changed, err)
			}
		}
	}
	set, err = Load(path)
	if err != nil || set.Len() != 2 || len(set.Users()) != 0 {
		t.Errorf("%d users, %d of them enabled, %v", set.Len(), len(set.Users()), err)
	}
	if _, _, err := set.AuthenticatePassword(t.Context(), "ann", "correct horse"); !errors.Is(err, ErrNoMatch) || set.HasProof("ann", mark) {
		t.Errorf("a disabled user signs in: %v", err)
	}
	if _, ok := set.Authenticate(token.Reveal()); ok {
		t.Error("the token of a disabled user is known")
	}
	for _, name := range []string{"ann", "bo"} {
		if changed, err := SetDisabled(path, name, false); err != nil || !changed {
			t.Errorf("enable %s: %v, %v", name, changed, err)
		}
	}
	set, _ = Load(path)
	if _, ok := set.Authenticate(token.Reveal()); !ok || !set.HasProof("ann", mark) {
		t.Error("an enabled user is not back")
	}
	if _, err := SetDisabled(path, "eve", true); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("eve: %v", err)
	}
	raw, _ := os.ReadFile(path)
	if !strings.Contains(string(raw), "# people") || !strings.Contains(string(raw), "# on call") || strings.Contains(string(raw), "disabled") {
		t.Errorf("the file is\n%s", raw)
	}
}

func TestSetPassword(t *testing.T) {
	t.Parallel()
	old, _ := bcrypt.GenerateFromPassword([]byte("old password"), bcrypt.MinCost)
	path := write(t, "users:\n  - name: ann # first\n    roles: [viewer]\n    password_hash: '"+string(old)+"'\n    token_sha256: ["+hexSum("t")+"]\n")
	set, _ := Load(path)
	_, mark, _ := set.AuthenticatePassword(t.Context(), "ann", "old password")
	if err := SetPassword(path, "ann", "new password"); err != nil {
		t.Fatal(err)
	}
	set, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.AuthenticatePassword(t.Context(), "ann", "new password"); err != nil {
		t.Error(err)
	}
	if _, _, err := set.AuthenticatePassword(t.Context(), "ann", "old password"); err == nil || set.HasProof("ann", mark) {
		t.Error("the old password is still good")
	}
	if _, ok := set.Authenticate("t"); !ok {
		t.Error("the token is gone")
	}
	raw, _ := os.ReadFile(path)
	if strings.Contains(string(raw), string(old)) || strings.Contains(string(raw), "new password") || !strings.Contains(string(raw), "# first") {
		t.Errorf("the file is\n%s", raw)
	}
	if err := SetPassword(path, "eve", "new password"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("eve: %v", err)
	}
	if err := SetPassword(path, "ann", "short"); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("short: %v", err)
	}
}

func TestExternalUsers(t *testing.T) {
	t.Parallel()
	path := write(t, "")
	token, err := AddUser(path, NewUser{Name: "ann@example.org", Roles: []Role{RoleViewer}, External: true})
	if err != nil || token != "" {
		t.Fatalf("token of %d bytes, %v", len(token.Reveal()), err)
	}
	set, err := Load(path)
	if a, ok := set.Find("ann@example.org"); err != nil || !ok || !a.External || a.Tokens != 0 {
		t.Errorf("got %+v, %v", a, err)
	}
	for what, u := range map[string]NewUser{
		"team": {Name: "bo", Roles: []Role{RoleViewer}, Teams: []string{"a b"}}, "agent": {Name: "Agent", Roles: []Role{RoleViewer}},
	} {
		if _, err := AddUser(path, u); !errors.Is(err, locksteward.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, bad := range []string{
		"users:\n  - {name: agent, roles: [viewer], external: true}\n",
		"users:\n  - {name: a, roles: [viewer], external: true, teams: ['x y']}\n",
	} {
		if _, err := Load(write(t, bad)); err == nil {
			t.Errorf("loaded:\n%s", bad)
		}
	}
}
