package endtoend_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// attacks are pieces of names that mean something to somebody on the way.
var attacks = []string{
	// markup and scripts
	"<script>alert(1)</script>", "</td></tr></table>", "<img src=x onerror=alert(1)>", "\"><svg/onload=alert(1)>", "' onmouseover='alert(1)", "<!--", "-->",
	"]]>", "&lt;b&gt;", "&#60;", "&amp;", "javascript:alert(1)", "data:text/html,<script>", "<base href=//evil>", "<style>*{display:none}</style>", "`${7*7}`",
	// templates, shells, SQL, Lua
	"{{.}}", "{{template \"x\"}}", "{% raw %}", "${jndi:ldap://evil}", "$(reboot)", "`reboot`", "; rm -rf /", "| cat /etc/passwd", "&& true", "' OR '1'='1",
	"'; DROP TABLE findings; --", "\" UNION SELECT 1 --", "\\'; --", "]] return redis.call('FLUSHALL') --", "\"..os.exit()..\"", "%s%s%n", "%d", "%!", "%00", "%0a", "%2e%2e%2f",
	// paths, URLs, headers, logs
	"../../etc/passwd", "..\\..\\", "//evil/", "?key=other&target=x", "#fragment", "\r\nSet-Cookie: a=b", "\r\n\r\nHTTP/1.1 200", "\nlevel=error msg=forged", "\x1b[2J\x1b[31m",
	"\x07", "\x08\x08\x08", "\r", "\x00", "a\x00b", "\x7f", "file:///etc/passwd", "http://169.254.169.254/", "@everyone", "<!channel>", "<@U123>", "[x](http://evil)", "*bold*", "~~~", "```",
	// metrics, YAML, JSON, CSV
	"}\nevil_metric 1\n", "{a=\"b\"}", "a\",b=\"c", "\\n", "\\", "\\\\", "\"", "'", ": |", "!!python/object", "&a *a", "- x", "# x", "null", "true", "~", "{\"a\":1}", "\\u0000", "\\ud800",
	"=cmd|' /C calc'!A0", "+1+1", "-1", "@SUM(1)", ",,,", ";;;", "\t\t", " ", "  lead", "trail  ",
	// Redis
	"*", "?", "[a-z]", "[^a]", "\\*", "{", "}", "{}", "{a}", "{a}{b}", "}{", "{{a}}", "*1\r\n$4\r\nPING\r\n", "$-1\r\n", "+OK\r\n", ":meta:", "locksteward:hold:{x}",
	// Unicode
	"\u202egnp.exe", "\u2066x\u2069", "\u200b", "\u200d", "\ufeff", "\u2028", "\u2029", "\u0085", "e\u0301", "\u00e9", "\u212a", "\u0130", "\ufb01", "\uff0e\uff0e\uff0f", "\U0001f512", "👩‍👩‍👧‍👦",
	"订单", "Ω≈ç√", "ﷺ", "\U000e0001", "\ufffd", "\ufffe", "\U0010ffff", "z\u0335\u0322a\u0334\u0321",
	// not Unicode
	"\xff", "\xfe\xff", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "a\xffb", "\x80\x81", "\xe2\x28\xa1",
}

// hostileNames are at least 1,000 different lock keys below prefix, the same in each run: every
// byte, every attack in several places, and bytes by chance.
func hostileNames(prefix string) []string {
	seen := map[string]bool{}
	add := func(name string) { seen[prefix+name] = true }
	for b := range 256 {
		add(string([]byte{byte(b)}))
		add("a" + string([]byte{byte(b)}) + "z")
	}
	for i, a := range attacks {
		add(a)
		add("order-" + a)
		add(a + a)
		add(attacks[(i+1)%len(attacks)] + a)
	}
	add("")
	add(strings.Repeat("x", 1000))
	add(strings.Repeat("<b>", 300))
	add(strings.Repeat("\xff", 400))
	add(strings.Repeat("ü", 500))
	random := rand.New(rand.NewPCG(7, 7))
	for i := range 200 {
		raw := make([]byte, 1+i%64)
		for j := range raw {
			raw[j] = byte(random.Uint32())
		}
		add(string(raw))
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// differ says how two sets of names differ, in a few words.
func differ(got map[string]int, want []string) string {
	var missing, more []string
	left := map[string]int{}
	maps.Copy(left, got)
	for _, name := range want {
		if left[name] == 0 {
			missing = append(missing, fmt.Sprintf("%q", name))
		}
		delete(left, name)
	}
	for name := range left {
		more = append(more, fmt.Sprintf("%q", name))
	}
	if len(missing)+len(more) == 0 {
		return ""
	}
	return fmt.Sprintf("%d are missing: %s; %d are too many: %s",
		len(missing), strings.Join(missing[:min(len(missing), 5)], " "), len(more), strings.Join(more[:min(len(more), 5)], " "))
}
