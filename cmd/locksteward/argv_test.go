package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestNoPasswordOnTheCommandLine walks all commands: whatever flag is given a URL
// with a password, the command refuses it before it does anything, says which flag,
// and shows it nowhere.
func TestNoPasswordOnTheCommandLine(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	urls := []string{
		"redis://scanner:" + secret + "@127.0.0.1:1/0", "rediss+cluster://:" + secret + "@a,b", "http://ana:" + secret + "@127.0.0.1:1",
		"postgres://steward:" + secret + "@127.0.0.1:1/db", "postgres://steward@127.0.0.1:1/db?sslmode=disable&password=" + secret,
		"POSTGRES://h/db?sslpassword=" + secret, "unix://u:" + secret + "@/x.sock",
	}
	tried := map[string]bool{}
	for _, c := range commands(newRoot(&program{})) {
		if !c.Runnable() || c.DisableFlagParsing {
			continue
		}
		for _, f := range visited(c.Flags().VisitAll) {
			if f.Name == "help" || slices.Contains(freeTextFlags, f.Name) {
				continue
			}
			forms := urls
			if !slices.Contains([]string{"server", "agent", "store"}, f.Name) {
				forms = urls[:1] // every command is built anew for each try
			}
			for _, url := range forms {
				value := url
				if f.Value.Type() == "stringToString" {
					value = "a:1=" + url
				}
				args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name+"="+value)
				for range len(wanted(c)) {
					args = append(args, "x")
				}
				var stdout, stderr bytes.Buffer
				code := run(t.Context(), args, &stdout, &stderr)
				if said := stdout.String() + stderr.String(); code != exitUsage || strings.Contains(said, secret) {
					t.Errorf("%s --%s=URL: exit %d, said %q", c.CommandPath(), f.Name, code, said)
				} else if f.Value.Type() == "string" && (!strings.Contains(said, "--"+f.Name) || !strings.Contains(said, "password")) {
					t.Errorf("%s --%s=URL: said %q", c.CommandPath(), f.Name, said)
				}
				tried[strings.TrimPrefix(c.CommandPath(), "locksteward ")] = true
			}
		}
	}
	if !tried["release request"] {
		t.Errorf("the walk misses commands: it tried %v", tried)
	}
}

// What is data and no address may look like a URL.
func TestKeysMayLookLikeURLs(t *testing.T) {
	t.Parallel()
	for text, is := range map[string]bool{
		"redis://127.0.0.1:6379/0": false, "redis://user@host:6379": false, "redis://user:@host": false, "redis+sentinel://a:26379,b:26379/m": false,
		"postgres://u@h:5432/db?sslmode=verify-full": false, "mysql://u@h:3306/db?tls=true": false, "mariadb://u:p@h/db": true, "postgres://u@h/db?passwordless=1": false,
		"redis://u:p@h": true, "postgres://h/db?user=u&password=p": true,
	} {
		if urlPassword.MatchString(text) != is {
			t.Errorf("%s: a password: %v", text, !is)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"locks", "list", "--agent=http://127.0.0.1:1", "--match=lock:http://a:b@c"}, &stdout, &stderr); code == exitUsage {
		t.Errorf("a pattern is taken for an address: %s", stderr.String())
	}
}
