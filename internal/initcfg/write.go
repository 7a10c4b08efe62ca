package initcfg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/report"
)

// maxRest is how many keys without a class are named in the file.
const maxRest = 20

// Target says how to reach the server, as the configuration is to have it. There
// is no password in it.
type Target struct {
	Name         string
	URL          string
	Username     string
	PasswordFile string
	CAFile       string
	CertFile     string
	KeyFile      string
	ServerName   string
	AddrMap      map[string]string
	// PasswordLeftOut says that a password was used that is in no file.
	PasswordLeftOut bool
}

// Write returns the configuration with the classes that accept lets in, and a
// comment for every figure that says where it comes from. now is for the heading.
func Write(plan Plan, target Target, now time.Time, accept func(Proposal) bool) string {
	var b strings.Builder
	seen := plan.Seen
	fmt.Fprintf(&b, `# Locksteward's configuration, first written by 'locksteward init' on %s.
# What it is made of: all names of %s, read %s in %s; %s, %s seen.
# Look through it, then: locksteward config check FILE, locksteward run --config FILE.
# 'locksteward config show --example' has every other key with its default.

targets:
  - # The label on everything of this target.
    name: %s
    url: %s
`, now.UTC().Format(time.DateOnly), oneLine(target.URL), plural.Count(seen.Sweeps, "time"), report.Show(seen.To.Sub(seen.From)),
		plural.Count(seen.Keys, "key"), plural.Count(len(seen.Locks), "lock"), plain(target.Name), quote(target.URL))
	writeLogin(&b, target)
	b.WriteString(`    # The agent cannot delete anything until it has a user that may:
    # release_credentials: {username: releaser, password_file: /run/secrets/releaser}

# Families of lock keys with their policy; the first match wins. Locks of no class
# are judged too, as class "default", and can never be released.
`)
	accepted := slices.DeleteFunc(slices.Clone(plan.Proposals), func(p Proposal) bool { return !accept(p) })
	if len(accepted) == 0 {
		b.WriteString(`# There is none yet. This would be one:
#   - class: orders
#     match: ["lock:order:*"]
#     expect: 30s      # longer holds are reported
#     ttl: required    # locks without TTL are reported
#     release: off
classes: []
`)
	} else {
		b.WriteString("classes:\n")
	}
	for _, p := range accepted {
		writeClass(&b, p, seen)
	}
	writeRest(&b, plan)
	return b.String()
}

func writeLogin(b *strings.Builder, target Target) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(b, "    %s: %s\n", key, quote(value))
		}
	}
	line("username", target.Username)
	line("password_file", target.PasswordFile)
	if target.PasswordLeftOut {
		b.WriteString("    # The password is not written here: put it into a file that only the agent reads.\n    # password_file: /run/secrets/redis\n")
	}
	line("ca_file", target.CAFile)
	line("cert_file", target.CertFile)
	line("key_file", target.KeyFile)
	line("tls_server_name", target.ServerName)
	if len(target.AddrMap) > 0 {
		b.WriteString("    addr_map:\n")
		for _, from := range sortedKeys(target.AddrMap) {
			fmt.Fprintf(b, "      %s: %s\n", quote(from), quote(target.AddrMap[from]))
		}
	}
}

func writeClass(b *strings.Builder, p Proposal, seen Seen) {
	var examples []string
	for _, key := range p.Examples(seen) {
		examples = append(examples, shorten(locksteward.DisplayKey(key)))
	}
	fmt.Fprintf(b, "  - # Seen: %s such as %s\n", plural.Count(len(p.Keys), "lock"), strings.Join(examples, ", "))
	fmt.Fprintf(b, "    # %s; %s.\n", p.Facts(), strings.Join(p.Libraries(), ", "))
	fmt.Fprintf(b, "    class: %s\n    match: [%s]\n", plain(p.Name), quote(p.Match))
	if !p.Watched() {
		b.WriteString("    # The pattern begins with a wildcard: sweeps find these locks, and no push reports them.\n")
	}
	b.WriteString("    # team: who is asked\n    # runbook_url: what to do\n")
	if p.Class.Expect > 0 {
		fmt.Fprintf(b, "    # %s.\n    expect: %s\n", sentence(p.Expect.Reason), report.Show(p.Class.Expect))
	} else {
		fmt.Fprintf(b, "    # No expect: %s.\n", p.Expect.Reason)
	}
	if p.TTL.Value > 0 {
		fmt.Fprintf(b, "    # A TTL that fits in the application: %s, %s.\n", report.Show(p.TTL.Value), p.TTL.Reason)
	}
	if p.Class.TTL != "" {
		fmt.Fprintf(b, "    # %s.\n    ttl: %s\n", sentence(p.TTLReason), p.Class.TTL)
	} else {
		fmt.Fprintf(b, "    # No ttl: %s.\n", p.TTLReason)
	}
	if p.Class.MaxTTL > 0 {
		fmt.Fprintf(b, "    # %s.\n    max_ttl: %s\n", sentence(p.MaxTTLReason), report.Show(p.Class.MaxTTL))
	} else {
		fmt.Fprintf(b, "    # No max_ttl: %s.\n", p.MaxTTLReason)
	}
	b.WriteString("    # Nothing is ever deleted unless a person asks and another approves: release: approve.\n    release: off\n")
}

// Facts says in one line what was seen of the family.
func (p Proposal) Facts() string {
	facts := []string{fmt.Sprintf("%d held now", p.Open)}
	if p.Row.Holds() > 0 {
		facts = append(facts, fmt.Sprintf("%s ended", plural.Count(p.Row.Holds(), "hold")))
	}
	if p.WithoutTTL > 0 {
		facts = append(facts, fmt.Sprintf("%d without TTL", p.WithoutTTL))
	}
	if p.TTLMax > 0 {
		facts = append(facts, fmt.Sprintf("TTL left %s to %s", report.Show(p.TTLMin), report.Show(p.TTLMax)))
	}
	if p.AgeKnown {
		least := ""
		if p.AgeMinimum {
			least = "at least "
		}
		facts = append(facts, fmt.Sprintf("oldest held for %s%s", least, report.Show(p.AgeMax)))
	}
	return strings.Join(facts, ", ")
}

func writeRest(b *strings.Builder, plan Plan) {
	if n := len(plan.Rest); n > 0 {
		fmt.Fprintf(b, "\n# Locks of no class that could be proposed: %d.\n", n)
		for _, key := range plan.Rest[:min(n, maxRest)] {
			fmt.Fprintf(b, "#   %s\n", shorten(locksteward.DisplayKey(key)))
		}
		if n > maxRest {
			fmt.Fprintf(b, "#   and %d more\n", n-maxRest)
		}
	}
	if n := plan.Seen.Candidates; n > 0 {
		fmt.Fprintf(b, "\n# Keys that look like locks by their name alone, and are not judged: %d. 'locksteward init\n# --match GLOB' takes keys for locks.\n", n)
	}
	if why := plan.Seen.Incomplete; why != "" {
		fmt.Fprintf(b, "\n# The last sweep was not complete, so that families may be missing: %s\n", oneLine(why))
	}
}

// quote writes text as a YAML string in double quotes. Go's escapes are YAML's for
// all that is valid UTF-8, and patterns are.
func quote(text string) string { return strconv.Quote(strings.ToValidUTF8(text, "?")) }

// plain is a name without quotes where YAML takes it for a word.
func plain(name string) string {
	switch name {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return quote(name)
	}
	for i := range len(name) {
		if c := name[i]; !(c >= 'a' && c <= 'z' || i > 0 && (c == '-' || c >= '0' && c <= '9')) {
			return quote(name)
		}
	}
	return name
}

// sentence begins with a capital.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// shorten keeps a key in a comment short.
func shorten(key string) string {
	if r := []rune(key); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return key
}

func oneLine(text string) string { return locksteward.DisplayKey(text) }
