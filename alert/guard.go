package alert

import (
	"fmt"
	"net/netip"
	"syscall"
)

// BlockedError is an address that a receiver's name resolved to and that must
// not be dialled.
type BlockedError struct {
	Addr netip.Addr
	// Never is true if allow_private would not help.
	Never bool
}

// Error ends with what to do.
func (e *BlockedError) Error() string {
	if e.Never {
		return fmt.Sprintf("address %s is never dialled for a webhook", e.Addr)
	}
	return fmt.Sprintf("address %s is inside the own network: set allow_private: true on this receiver if that is meant", e.Addr)
}

// never are addresses without webhooks: unspecified, multicast, reserved, and the metadata services of clouds, which hand out credentials.
var never = prefixes(
	"0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "ff00::/8",
	"169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "169.254.0.23/32", "100.100.100.200/32",
	"168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128", "fe80::a9fe:a9fe/128",
)

// private are addresses inside a network: they need allow_private.
var private = prefixes(
	"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
	"192.0.0.0/24", "198.18.0.0/15", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",
	"::/96", "::ffff:0:0:0/96", "fc00::/7", "fe80::/10", "fec0::/10", "2001:db8::/32", "100::/64",
	// Each of these contains an IPv4 address that a translator may deliver to.
	"64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32",
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(texts))
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// The forms of IPv6 addresses that a translator or tunnel delivers to the IPv4
// address in them: its offset, in bytes.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // as most set it up: RFC 8215 leaves it open
	{netip.MustParsePrefix("2002::/16"), 2},
}

// carried returns the IPv4 address inside an IPv6 address; the zero Addr, which is in no
// list, if there is none.
func carried(addr netip.Addr) netip.Addr {
	for _, c := range carriers {
		if addr.Is6() && c.prefix.Contains(addr) {
			b := addr.As16()
			if b[c.at] == 0 {
				break // :: and ::1 contain none
			}
			return netip.AddrFrom4([4]byte(b[c.at : c.at+4]))
		}
	}
	return netip.Addr{}
}

// permit checks one resolved address.
func permit(addr netip.Addr, allowPrivate bool) error {
	// An IPv4-mapped address or a zone must not slip past the lists.
	addr = addr.Unmap().WithZone("")
	if within(never, addr) || within(never, carried(addr)) {
		return &BlockedError{Addr: addr, Never: true}
	}
	if within(private, addr) && !allowPrivate {
		return &BlockedError{Addr: addr}
	}
	return nil
}

// guard is a net.Dialer.Control: it runs after DNS resolution on the address
// that is about to be dialled, so that no answer can change in between.
func guard(allowPrivate bool) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: not an IP address: %w", network, err)
		}
		return permit(ap.Addr(), allowPrivate)
	}
}
