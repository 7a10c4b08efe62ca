package release_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/locksteward/locksteward"
)

// TestNoTokenAnywhere is point 9 of reliability.md §7 for this package: a token
// goes through every path, and is in no file, log line, error or request.
func TestNoTokenAnywhere(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var said bytes.Buffer
	tokens := map[string]string{}
	token := func(name string) string {
		tokens[name] = "canary" + rand.Text()
		return tokens[name]
	}
	run := func(key string, before func()) {
		r := e.request(t, ana, key)
		if before != nil {
			before()
		}
		r = e.approve(t, ben, r)
		fmt.Fprintf(&said, "%+v\n", r)
	}
	e.do(t, "set", "lock:order:1", token("released"), "px", minute)
	run("lock:order:1", nil)
	e.do(t, "set", "lock:order:2", token("old"), "px", minute)
	run("lock:order:2", func() { e.do(t, "set", "lock:order:2", token("new"), "px", minute) })
	e.do(t, "set", "lock:order:3", token("no right"), "px", minute)
	run("lock:order:3", func() { e.do(t, "acl", "setuser", "releaser", "-hset") })
	e.do(t, "acl", "setuser", "releaser", "+hset")
	tokens["without TTL"] = "canary in plain words" // no library's: its identity is none
	e.do(t, "set", "lock:order:4", tokens["without TTL"])
	r := e.request(t, ana, "lock:order:4")
	decision := yes(r)
	decision.EvidenceHash = "wrong"
	_, err := e.service.Approve(t.Context(), ben, r.ID, decision)
	fmt.Fprintln(&said, err)
	_, err = e.service.Approve(t.Context(), ana, r.ID, yes(r))
	fmt.Fprintln(&said, err)
	e.exec.set(func(g *gate) { g.loseBefore = true })
	fmt.Fprintf(&said, "%+v\n", e.approve(t, ben, r))
	fmt.Fprintln(&said, e.service.Recover(t.Context()))

	for _, entry := range e.logs.All() {
		fmt.Fprintf(&said, "%s %v\n", entry.Message, entry.ContextMap())
	}
	for _, state := range []locksteward.RequestState{locksteward.RequestReleased, locksteward.RequestChanged, locksteward.RequestFailed, locksteward.RequestUnknown} {
		if !bytes.Contains(said.Bytes(), []byte(state)) {
			t.Errorf("no request became %s: the test covers less than it says", state)
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(e.dsn[len("sqlite:"):]), "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	places := map[string][]byte{"output and logs": said.Bytes()}
	for _, f := range files {
		if places[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	for name, secret := range tokens {
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))} {
			for place, content := range places {
				if bytes.Contains(content, []byte(form)) {
					t.Errorf("the token %q is in %s", name, place)
				}
			}
		}
	}
	for place, content := range places {
		if bytes.Contains(content, []byte(releaserPassword)) {
			t.Errorf("the releaser's password is in %s", place)
		}
	}
}
