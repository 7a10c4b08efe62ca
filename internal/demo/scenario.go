package demo

import (
	"crypto/rand"
	"strings"
	"time"
)

// What the lock users ask for. The times are short enough to see everything
// within seconds and long enough for a machine under load.
const (
	reportExpect = 2 * time.Second
	reportTTL    = 6 * time.Second
	importTTL    = 6 * time.Second
	importRenews = 0.2 // of it: late after 1.5s, gone after 6s
	orderExpect  = 3 * time.Second
	orderLease   = 10 * time.Minute
	invoiceLease = time.Hour
	cartTTL      = 2 * time.Second
	cartExpect   = 5 * time.Second
)

// Classes of the demo's configuration.
const (
	classCarts    = "carts"
	classStock    = "stock"
	classReports  = "reports"
	classImports  = "imports"
	classOrders   = "orders"
	classInvoices = "invoices"
)

// scene has the names of all keys of one demo.
type scene struct {
	prefix string
}

// ownScene is for a server that nobody else uses.
func ownScene() scene { return scene{prefix: "demo:"} }

// guestScene is for a server of somebody else: no key of theirs can begin with
// its prefix.
func guestScene() scene {
	return scene{prefix: "demo:" + strings.ToLower(rand.Text()[:8]) + ":"}
}

func (s scene) cart() string      { return s.prefix + "cart:7" }
func (s scene) stock() string     { return s.prefix + "stock:sku-9" }
func (s scene) report() string    { return s.prefix + "report:nightly" }
func (s scene) importing() string { return s.prefix + "import:eu" }
func (s scene) order() string     { return s.prefix + "order:42" }
func (s scene) invoice() string   { return s.prefix + "invoice:2026-03" }

// companions is the prefix of what our lock library writes beside its locks.
func (s scene) companions() string { return s.prefix + "locksteward:" }

// owns says whether a key is one of the demo's.
func (s scene) owns(key string) bool { return strings.HasPrefix(key, s.prefix) }

// role is one lock user as the output introduces it.
type role struct {
	key     string
	healthy bool
	what    string
}

func (s scene) roles() []role {
	return []role{
		{s.cart(), true, "three workers of our lock library take turns"},
		{s.stock(), false, "SETNX, then a crash before EXPIRE: it never expires"},
		{s.report(), false, "meant for " + duration(reportExpect) + ", but its work hangs while the watchdog renews it"},
		{s.importing(), false, "its process gets a SIGKILL: renewal stops, the lease runs out"},
		{s.order(), false, "a Redisson lock for 10 minutes whose JVM is gone, while a client waits"},
		{s.invoice(), false, "SET key 1: every client has the same token"},
	}
}

// expectation is a finding that the demo promises to show: on a key, or on a
// class.
type expectation struct {
	rule  string
	key   string
	class string
}

func (e expectation) String() string {
	if e.key == "" {
		return e.rule + " on class " + e.class
	}
	return e.rule + " on " + e.key
}

// expected lists the promised findings in the order of the output.
func (s scene) expected() []expectation {
	return []expectation{
		{rule: "ttl/none", key: s.stock()},
		{rule: "hold/too-long", key: s.report()},
		{rule: "hold/too-long", key: s.order()},
		{rule: "renewal/failing", key: s.importing()},
		{rule: "hold/lost", key: s.importing()},
		{rule: "holder/shared-token", class: classInvoices},
	}
}
