package acl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/acl"
)

func version(t *testing.T, text string) acl.Version {
	t.Helper()
	v, err := acl.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// userOf is the user that a server of a version gets for its work.
func userOf[Work any](t *testing.T, by func(acl.Version, Work) (acl.User, error), v acl.Version, w Work) acl.User {
	t.Helper()
	u, err := by(v, w)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func scannerOf(t *testing.T, v acl.Version, s acl.Scan) acl.User {
	t.Helper()
	return userOf(t, acl.Scanner, v, s)
}

func releaserOf(t *testing.T, v acl.Version, f acl.Free) acl.User {
	t.Helper()
	return userOf(t, acl.Releaser, v, f)
}

func appOf(t *testing.T, v acl.Version, a acl.App) acl.User {
	t.Helper()
	return userOf(t, acl.Application, v, a)
}

func sentinelOf(t *testing.T, v acl.Version, a acl.Ask) acl.User {
	t.Helper()
	return userOf(t, acl.Sentinel, v, a)
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"7.0": "redis 7.0", "7.0.15": "redis 7.0", "redis 8": "redis 8.0", "Redis-6.2": "redis 6.2", "8.2.1": "redis 8.2",
		"valkey 8.0": "valkey 8.0", "valkey-7.2.5": "valkey 7.2", "Valkey 9": "valkey 9.0", "v7.2": "redis 7.2",
	} {
		if got, err := acl.ParseVersion(text); err != nil || got.String() != want {
			t.Errorf("ParseVersion(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "write 7.0", "seven": "write 7.0", "5.0.14": "no ACLs", "6.0": "no channels", "valkey 7.0": "began at 7.2", "7.x": "write 7.0", "-7.0": "",
	} {
		_, err := acl.ParseVersion(text)
		if want == "" {
			continue
		}
		if !errors.Is(err, locksteward.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseVersion(%q): %v, want %q in it", text, err, want)
		}
	}
}

func TestVersionOf(t *testing.T) {
	t.Parallel()
	for info, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\n":                        "redis 7.0",
		"# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.0\r\n": "valkey 8.1",
		"redis_version:5.0.14\r\n":                                    "redis 5.0",
	} {
		if got, ok := acl.VersionOf(info); !ok || got.String() != want {
			t.Errorf("VersionOf(%q) = %s, %t", info, got, ok)
		}
	}
	for _, info := range []string{"", "redis_version:x.y\r\n", "redis_version:7\r\n", "redis_version:7.z\r\n", "tredis_version:7.0\r\n"} {
		if got, ok := acl.VersionOf(info); ok {
			t.Errorf("VersionOf(%q) = %s", info, got)
		}
	}
}

// What differs between servers, as facts; make servers tries those of each server
// that there is.
func TestScannerFitsTheServer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		version  string
		has, not []string
	}{
		{
			"6.2",
			[]string{"~*", "+client|trackinginfo", "+object|idletime", "resetchannels", "&locksteward:*"},
			[]string{"%R~*", "+pexpiretime", "+cluster|shards", "+client|no-touch", "+acl|dryrun"},
		},
		{"7.0", []string{"%R~*", "+pexpiretime", "+cluster|shards", "+acl|dryrun"}, []string{"~*", "+client|no-touch"}},
		{"7.2", []string{"%R~*", "+client|no-touch"}, nil},
		{"8.0", []string{"%R~*", "+client|no-touch", "+pexpiretime"}, nil},
		{"valkey 7.2", []string{"%R~*", "+client|no-touch", "+pexpiretime"}, nil},
		{"valkey 8.0", []string{"%R~*", "+client|no-touch", "+pexpiretime", "+acl|dryrun"}, nil},
	}
	for _, tc := range tests {
		rules := scannerOf(t, version(t, tc.version), acl.Scan{}).Rules()
		for _, want := range append(tc.has, "-@all", "+scan", "&__redis__:invalidate") {
			if !slices.Contains(rules, want) {
				t.Errorf("%s: %s is missing in %v", tc.version, want, rules)
			}
		}
		for _, no := range tc.not {
			if slices.Contains(rules, no) {
				t.Errorf("%s: %s is in %v", tc.version, no, rules)
			}
		}
		if slices.Index(rules, "resetchannels") > slices.IndexFunc(rules, func(r string) bool { return r[0] == '&' }) {
			t.Errorf("%s: resetchannels takes the channels away again: %v", tc.version, rules)
		}
	}
}

// Every command of every list has its fact and its reason.
func TestEveryCommandHasItsReason(t *testing.T) {
	t.Parallel()
	for _, u := range []acl.User{
		scannerOf(t, version(t, "8.0"), acl.Scan{Keyspace: redissource.ACLKeyspace(0, &class.Set{})}),
		releaserOf(t, version(t, "8.0"), acl.Free{Classes: []class.Class{{Name: "a", Match: []string{"lock:*"}, Release: class.ReleaseApprove}}}),
		appOf(t, version(t, "8.0"), acl.App{Name: "billing", Locks: []string{"lock:*"}, DB: 1, Cluster: true}),
	} {
		if len(u.Commands) == 0 {
			t.Errorf("%s has no commands", u.Name)
		}
		for _, rule := range u.Commands {
			if acl.Why(strings.TrimPrefix(rule, "+")) == "" {
				t.Errorf("%s: nobody says what %s is needed for", u.Name, rule)
			}
			if strings.ContainsAny(rule, "@*") {
				t.Errorf("%s: %s is not one command", u.Name, rule)
			}
		}
	}
}

func TestNoPasswordIsPrinted(t *testing.T) {
	t.Parallel()
	u := scannerOf(t, version(t, "7.0"), acl.Scan{Hash: acl.Hash("canary")})
	for _, text := range []string{u.SetUser(), u.FileLine()} {
		if strings.Contains(text, "canary") || !strings.Contains(text, " #"+acl.Hash("canary")+" ") || len(acl.Hash("canary")) != 64 {
			t.Error(text)
		}
	}
	if acl.Hash("") != "" {
		t.Error("no password has a hash")
	}
	if text := scannerOf(t, version(t, "7.0"), acl.Scan{}).SetUser(); strings.Contains(text, ">") || !strings.Contains(text, " #SHA256-OF-THE-PASSWORD-OF-SCANNER ") {
		t.Error(text)
	}
}

func TestReleaserCoversReleasableClassesAlone(t *testing.T) {
	t.Parallel()
	classes := []class.Class{
		{Name: "money", Match: []string{"lock:money:*"}},
		{Name: "orders", Match: []string{"lock:order:*", `odd \[x] \*`}, Release: class.ReleaseApprove},
		{Name: "auto", Match: []string{"lock:*"}, Release: class.ReleaseAuto},
	}
	u := releaserOf(t, version(t, "7.0"), acl.Free{Classes: classes[:2], MetaPrefixes: []string{"a*b:"}})
	rules := strings.Join(u.Rules(), " ")
	if strings.Contains(rules, "money") {
		t.Errorf("a class that nobody may release is in %s", rules)
	}
	for _, want := range []string{
		"~lock:order:*", "~locksteward:exec:{lock:order:*}", `~a\*b:undo:{*}:lock:order:*`, "&locksteward:wake:{lock:order:*}:*",
		`~odd?\[x]?\*`, "&redisson_lock__channel:{lock:order:*}", "&locksteward:instance:*", `&a\*b:instance:*`,
	} {
		if !slices.Contains(u.Rules(), want) {
			t.Errorf("%s is not in %s", want, rules)
		}
	}
	for _, rule := range u.Rules() {
		if slices.Contains([]string{"~*", "&*", "~locksteward:exec:*", "~locksteward:hold:*", "+scan", "+keys", "+@all"}, rule) {
			t.Errorf("too much: %s", rule)
		}
	}
	if len(u.Notes) != 0 {
		t.Errorf("notes of classes that are apart: %v", u.Notes)
	}
	wide := releaserOf(t, version(t, "7.0"), acl.Free{Classes: classes})
	if text := strings.Join(wide.Notes, "\n"); !strings.Contains(text, `"money"`) || !strings.Contains(text, `"lock:*" of class "auto"`) {
		t.Errorf("nobody says that the server lets the releaser at money: %q", text)
	}
	if _, err := acl.Releaser(version(t, "7.0"), acl.Free{Classes: classes[:1]}); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("a releaser of nothing: %v", err)
	}
}

func TestApplicationSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := acl.Application(version(t, "7.0"), acl.App{Name: "billing", KeyPrefix: "a{b"})
	if err == nil || !strings.Contains(err.Error(), "lock:billing:*") || !strings.Contains(err.Error(), "braces") {
		t.Errorf("%v", err)
	}
	_, err = acl.Application(version(t, "7.0"), acl.App{Name: "bill ing", Locks: []string{"*"}})
	if !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("a name with a blank: %v", err)
	}
	old := strings.Join(appOf(t, version(t, "6.2"), acl.App{Name: "a", Locks: []string{"*"}, Cluster: true}).Rules(), " ")
	for _, no := range []string{"spublish", "ssubscribe", "setinfo", "shards"} {
		if strings.Contains(old, no) {
			t.Errorf("6.2 has no %s: %s", no, old)
		}
	}
}
