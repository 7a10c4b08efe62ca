package sqlsource

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/locksteward/locksteward"
)

// liquibaseHolder is what Liquibase writes into LOCKEDBY: HOST#DESCRIPTION (ADDRESS), with the
// description if liquibase.hostDescription is set (LockDatabaseChangeLogGenerator.java).
var liquibaseHolder = regexp.MustCompile(`^([^#]*?)(?:#(.*))? \(([0-9A-Fa-f:.]+)(?:%[^)]*)?\)$`)

// holderOf is what a holder column says.
func (t *lockTable) holderOf(text string) locksteward.Holder {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if m := liquibaseHolder.FindStringSubmatch(text); m != nil {
		return locksteward.Holder{Host: m[1], App: m[2]}
	}
	if t.host {
		return locksteward.Holder{Host: text}
	}
	return locksteward.Holder{Session: text}
}

// addrOf returns the address from which a holder connects, if its text names one that says
// something: not that of every machine.
func (d *database) addrOf(text string) (string, bool) {
	if m := liquibaseHolder.FindStringSubmatch(text); m != nil {
		text = m[3]
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.IsLoopback() && !d.loopback || addr.IsUnspecified() || addr.IsLinkLocalUnicast() {
		return "", false
	}
	return addr.Unmap().String(), true
}
