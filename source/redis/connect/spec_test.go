package connect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		addrs string
		shown string
		mode  locksteward.Mode
		db    int
		user  string
		pass  string
	}{
		"redis://h":                            {addrs: "h:6379", shown: "redis://h:6379/0", mode: "standalone"},
		"redis://h:7000/3":                     {addrs: "h:7000", shown: "redis://h:7000/3", mode: "standalone", db: 3},
		"redis://h?db=4":                       {addrs: "h:6379", shown: "redis://h:6379/4", mode: "standalone", db: 4},
		" rediss://u:p%40ss%2F@h:1/":           {addrs: "h:1", shown: "rediss://h:1/0", mode: "standalone", user: "u", pass: "p@ss/"},
		"redis://:pw@[::1]":                    {addrs: "[::1]:6379", shown: "redis://[::1]:6379/0", mode: "standalone", pass: "pw"},
		"redis://u@[::1]:9":                    {addrs: "[::1]:9", shown: "redis://[::1]:9/0", mode: "standalone", user: "u"},
		"unix:///run/redis.sock?db=2":          {addrs: "/run/redis.sock", shown: "unix:///run/redis.sock?db=2", mode: "standalone", db: 2},
		"unix:///tmp/a%3Fb%25c.sock":           {addrs: "/tmp/a?b%c.sock", shown: "unix:///tmp/a%3Fb%25c.sock", mode: "standalone"},
		"unix:///tmp/a@b.sock":                 {addrs: "/tmp/a@b.sock", shown: "unix:///tmp/a@b.sock", mode: "standalone"},
		"redis+cluster://a,b:1,[::1]":          {addrs: "a:6379,b:1,[::1]:6379", shown: "redis+cluster://a:6379,b:1,[::1]:6379", mode: "cluster"},
		"rediss+cluster://u:p@a/0":             {addrs: "a:6379", shown: "rediss+cluster://a:6379", mode: "cluster", user: "u", pass: "p"},
		"redis+sentinel://a,b:5/mymaster":      {addrs: "a:26379,b:5", shown: "redis+sentinel://a:26379,b:5/mymaster/0", mode: "sentinel"},
		"rediss+sentinel://:x@a/my%20master/7": {addrs: "a:26379", shown: "rediss+sentinel://a:26379/my%20master/7", mode: "sentinel", db: 7, pass: "x"},
	}
	for url, want := range tests {
		got, err := connect.Parse(url)
		if err != nil {
			t.Errorf("Parse(%q): %v", url, err)
			continue
		}
		if a := strings.Join(got.Addrs, ","); a != want.addrs {
			t.Errorf("Parse(%q).Addrs = %s, want %s", url, a, want.addrs)
		}
		if got.String() != want.shown || got.Mode != want.mode || got.DB != want.db {
			t.Errorf("Parse(%q) = %s %s db %d, want %s %s db %d", url, got, got.Mode, got.DB, want.shown, want.mode, want.db)
		}
		if got.Username != want.user || got.Password.Reveal() != want.pass || got.HasPassword != (want.pass != "") {
			t.Errorf("Parse(%q): user or password wrong: %q, %v", url, got.Username, got.HasPassword)
		}
		if again, err := connect.Parse(got.String()); err != nil || again.String() != got.String() || !slices.Equal(again.Addrs, got.Addrs) {
			t.Errorf("Parse(%q), which is how %q is shown: %+v, %v", got, url, again, err)
		}
	}
}

// sesame is a password that no message may show.
const sesame = "open-sesame"

func TestParseErrorsSayWhatToWriteAndHideThePassword(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"":                                     "write redis://",
		sesame + "@localhost:6379":             "write redis://",
		"http://u:" + sesame + "@h":            "unknown scheme \"http\"",
		"redis://u:" + sesame + "@":            "a host is empty",
		"redis://u:" + sesame + "@a,b":         "redis+cluster://",
		"redis://u:" + sesame + "@h:0":         "port",
		"redis://u:" + sesame + "@h:99999":     "port",
		"redis://u:" + sesame + "@h/x":         "database must be a number",
		"redis://u:" + sesame + "@h/-1":        "database must be a number",
		"redis://u:" + sesame + "@h?a=b":       "unknown parameter \"a\"",
		"redis://u:" + sesame + "%@h":          "% escape",
		"redis://u:" + sesame + "/x@h":         "%2F",
		"redis://u:" + sesame + "#x@h":         "%23",
		"redis://u:" + sesame + "@::1":         "[::1]:6379",
		"redis+cluster://u:" + sesame + "@a/1": "database 0 alone",
		"redis+cluster://a?db=1":               "database 0 alone",
		"redis+sentinel://u:" + sesame + "@a":  "no master name",
		"unix://relative/path":                 "absolute path",
		"redis://h?db=" + "%zz":                "key=value",
	}
	for url, want := range tests {
		_, err := connect.Parse(url)
		if err == nil {
			t.Errorf("Parse(%q) accepted", url)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %q, want it to contain %q", url, err, want)
		}
		if strings.Contains(err.Error(), sesame) {
			t.Errorf("Parse(%q) shows the password: %q", url, err)
		}
	}
}

// FuzzParse puts a secret where a password stands: whatever is around it,
// neither an error nor the redacted form shows it.
func FuzzParse(f *testing.F) {
	f.Add("redis", "user", "@host:6379/0")
	f.Add("redis+cluster", "", "@a,b")
	f.Add("redis+sentinel", "u", "@a/")
	f.Add("rediss", "u", "@h?db=x")
	f.Add("nope", "", "")
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		const secret = "kE9zQ-secret"
		if scheme == "unix" || strings.ContainsAny(scheme+user, ":/?#@") || !strings.HasPrefix(rest, "@") {
			return // not a password's place
		}
		spec, err := connect.Parse(scheme + "://" + user + ":" + secret + rest)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the password: %q", err)
			}
			return
		}
		if strings.Contains(spec.String(), secret) || !spec.HasPassword {
			t.Errorf("parsed as %q, password known: %v", spec, spec.HasPassword)
		}
	})
}

func TestValidateReportsAllProblems(t *testing.T) {
	t.Parallel()
	cfg := connect.Config{
		URL: "redis://h:0", CAFile: "/does/not/exist", CertFile: "x.pem",
		DialTimeout: -1, ReadTimeout: -1, PoolSize: -1, ClientName: "a b",
		AddrMap: map[string]string{"a": "b:1"},
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("not a joined error: %v", err)
	}
	for _, path := range []string{"url: ", "ca_file: ", "key_file: ", "dial_timeout: ", "read_timeout: ", "pool_size: ", "client_name: ", "addr_map: "} {
		if !strings.Contains("\n"+err.Error(), "\n"+path) {
			t.Errorf("no line begins with %q in:\n%v", path, err)
		}
	}
	plain := connect.Config{URL: "redis://h", CertFile: "a", KeyFile: "b"}
	if err := plain.Validate(); err == nil || !strings.Contains(err.Error(), "rediss://") {
		t.Errorf("TLS files without TLS: %v", err)
	}
}
