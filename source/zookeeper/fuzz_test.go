package zksource

import (
	"strings"
	"testing"
)

// Names, patterns and URLs are of others: whatever they are, they are read or refused.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"_c_30cb3e41-63ec-e14b-c3a6-b539de15110f-lock-0000000007", "0ef31b062f914001941862c88fe65144__rlock__0000000000", "/locks/*", `\`, "zookeeper://u@h:1,[::1]/a%20b", "leases/_c_30cb3e41-63ec-e14b-c3a6-b539de15110f-lease-0000000001", "\xff/\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := parseMember(text)
		if ok && (m.name != text || m.library == "" || m.seq < 0 && m.kind != kindLease) {
			t.Errorf("%q is %+v", text, m)
		}
		if dir := directoryOf("/a/" + text); dir != "/a/"+text && !strings.HasPrefix("/a/"+text, dir+"/") {
			t.Errorf("the directory of %q is %q", text, dir)
		}
		if host := hostOf([]byte(text)); host != "" && (host != text || strings.ContainsAny(host, " \n\x00")) {
			t.Errorf("the host of %q is %q", text, host)
		}
		if steps, why := parsePattern(text); (len(steps) == 0) != (why != "") {
			t.Errorf("pattern %q: %d steps, %q", text, len(steps), why)
		}
		if s, err := parseURL(text); err == nil && len(s.servers) == 0 {
			t.Errorf("url %q has no servers", text)
		}
	})
}
