package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/access"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/users"
)

// Warnings are what is valid and surely not meant, each with its path and what
// to do.
func (c Config) Warnings() []string {
	var out []string
	addresses := make([]lockstore.Address, len(c.Targets))
	for i, t := range c.Targets {
		a, err := lockstore.Parse(t.URL)
		if err != nil {
			continue
		}
		addresses[i] = a
		for j, other := range addresses[:i] {
			if sameServer(a, other) {
				out = append(out, fmt.Sprintf("targets[%d].url: %s database %d is watched as targets[%d] (%s) already; every finding is reported twice; remove one of the two",
					i, strings.Join(a.Hosts, ","), a.DB, j, c.Targets[j].Name))
			}
		}
	}
	for i, pattern := range c.Sources.Files {
		if files, err := filepath.Glob(pattern); err == nil && len(files) == 0 && isGlob(pattern) {
			out = append(out, fmt.Sprintf("targets_from.files[%d]: %s matches no file: its targets are watched once there is one; correct the pattern if there should be", i, pattern))
		}
	}
	for i, srv := range c.Sources.SRV {
		t := srv.Target
		if (t.PasswordFile != "" || t.ReleaseCredentials != nil && t.ReleaseCredentials.PasswordFile != "") && !strings.HasPrefix(t.URL, "rediss") {
			out = append(out, fmt.Sprintf("targets_from.srv[%d].target.url: an attacker who can forge an answer for %s is sent the password; write rediss:// with ca_file", i, srv.Record))
		}
	}
	if c.Store.Shared() && c.Store.AuditKeyFile == "" {
		out = append(out, "store.audit_key_file: empty, so that checkpoints of the audit trail are not signed; make a key with '"+audit.MakeKey+"'")
	}
	return append(out, append(c.releaseWarnings(), c.peopleWarnings()...)...)
}

// releaseWarnings are about classes whose release cannot be as it is meant.
func (c Config) releaseWarnings() []string {
	var out []string
	for i, cl := range c.Classes {
		at := fmt.Sprintf("classes[%d]", i)
		if cl.SelfApprovalOrDefault() == class.SelfApprovalAlert && len(c.Alert.Receivers) == 0 {
			out = append(out, at+".self_approval: alert tells the others, but alert.receivers is empty, so that it is refused; add a receiver, or write deny or allow")
		}
		if cl.Automatic() && len(c.Alert.Receivers) == 0 {
			out = append(out, at+".release: auto releases without a person, and alert.receivers is empty, so that nobody hears of it; add a receiver")
		}
	}
	return out
}

// peopleWarnings are about classes whose release nobody could approve. People of a
// provider are not known here.
func (c Config) peopleWarnings() []string {
	if c.Console.SignIn.OIDC != nil {
		return nil
	}
	set, err := users.Load(c.Console.UsersFile)
	if err != nil {
		return nil // Validate says so
	}
	return access.Undecidable(c.Classes, set)
}

// sameServer says whether two URLs lead to the same database.
func sameServer(a, b lockstore.Address) bool {
	if a.Kind != b.Kind || a.DB != b.DB || a.Name != b.Name ||
		(a.Mode == locksteward.ModeSentinel) != (b.Mode == locksteward.ModeSentinel) {
		return false
	}
	return slices.ContainsFunc(a.Hosts, func(x string) bool {
		return slices.ContainsFunc(b.Hosts, func(y string) bool { return sameAddr(x) == sameAddr(y) })
	})
}

// sameAddr writes the names of this machine alike.
func sameAddr(addr string) string {
	addr = strings.ToLower(addr)
	for _, name := range []string{"localhost:", "[::1]:"} {
		if port, ok := strings.CutPrefix(addr, name); ok {
			return "127.0.0.1:" + port
		}
	}
	return addr
}
