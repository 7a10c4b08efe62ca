package alert

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// innards are IPv4 addresses that no message may go to without leave, and whether
// leave helps.
func innards() map[string]bool {
	return map[string]bool{
		"127.0.0.1": true, "127.0.0.2": true, "127.255.255.254": true, "10.0.0.1": true, "10.255.255.255": true, "172.16.0.1": true,
		"172.31.255.254": true, "192.168.0.1": true, "192.168.255.255": true, "100.64.0.1": true, "100.127.255.254": true, "169.254.1.1": true,
		"169.254.255.254": true, "192.0.0.8": true, "198.18.0.1": true, "198.19.255.254": true, "192.0.2.1": true, "198.51.100.1": true,
		"203.0.113.1": true,
		"0.0.0.0":     false, "0.1.2.3": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"169.254.169.254": false, "169.254.170.2": false, "169.254.170.23": false, "169.254.0.23": false, "100.100.100.200": false,
		"168.63.129.16": false, "192.0.0.192": false,
	}
}

// corpus are addresses as a name may resolve to them: each of the innards in all the
// forms that stand for it, and those of IPv6.
func corpus() map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for text, leave := range innards() {
		v4 := netip.MustParseAddr(text)
		b := v4.As4()
		out[v4] = leave
		out[netip.AddrFrom16(v4.As16())] = leave // ::ffff:a.b.c.d
		for _, form := range []string{"::%x:%x", "::ffff:0:%x:%x", "64:ff9b::%x:%x", "64:ff9b:1::%x:%x", "2002:%x:%x::1"} {
			a := netip.MustParseAddr(fmt.Sprintf(form, binary.BigEndian.Uint16(b[:2]), binary.BigEndian.Uint16(b[2:])))
			// Nothing stands for an address that begins with 0; these are refused as IPv6.
			out[a] = leave || b[0] == 0 && a != netip.IPv6Unspecified()
		}
	}
	for text, leave := range map[string]bool{
		"::1": true, "::": false, "fe80::1": true, "fe80::1%eth0": true, "fec0::1": true, "fc00::1": true, "fdff:ffff::1": true, "ff02::1": false, "ff0e::1": false,
		"2001:db8::1": true, "100::1": true, "2001::1": true, "fd00:ec2::254": false, "fd00:ec2::23": false, "fd20:ce::254": false, "fe80::a9fe:a9fe": false,
	} {
		out[netip.MustParseAddr(text)] = leave
	}
	return out
}

func TestInnardsAreRefusedInAllForms(t *testing.T) {
	t.Parallel()
	all := corpus()
	if len(all) < 200 {
		t.Errorf("%d addresses", len(all))
	}
	for addr, leave := range all {
		control := guard(false)
		if err := control("tcp", netip.AddrPortFrom(addr, 443).String(), nil); !isA[*BlockedError](err) {
			t.Errorf("%s is dialled: %v", addr, err)
		}
		err := guard(true)("tcp", netip.AddrPortFrom(addr, 443).String(), nil)
		if leave != (err == nil) {
			t.Errorf("%s with leave: %v", addr, err)
		}
	}
	for _, addr := range []string{"93.184.216.34", "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "169.253.255.255", "11.0.0.1", "2606:4700::1111", "2002:5db8:d822::1"} {
		// 6to4 of a public address: private, since a relay would deliver it.
		blocked := guard(false)("tcp", netip.AddrPortFrom(netip.MustParseAddr(addr), 443).String(), nil) != nil
		if blocked != strings.HasPrefix(addr, "2002:") {
			t.Errorf("%s: blocked is %t", addr, blocked)
		}
	}
}

// nameServer answers each question for A and AAAA with what it is sent. It speaks the
// least of RFC 1035 that a stub resolver wants.
type nameServer struct {
	conn net.PacketConn
	mu   sync.Mutex
	addr netip.Addr
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if out := s.answer(buf[:n]); out != nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return s
}

func (s *nameServer) says(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = a
}

func (s *nameServer) answer(q []byte) []byte {
	end := 12
	for end < len(q) && q[end] != 0 {
		end += int(q[end]) + 1
	}
	end += 5 // the root, type and class
	if len(q) < end {
		return nil
	}
	s.mu.Lock()
	addr := s.addr
	s.mu.Unlock()
	kind := binary.BigEndian.Uint16(q[end-4:])
	out := append([]byte{}, q[:end]...)
	binary.BigEndian.PutUint16(out[2:], 0x8180) // an answer, no error
	binary.BigEndian.PutUint16(out[6:], 0)
	binary.BigEndian.PutUint32(out[8:], 0)
	if wants := map[uint16]bool{1: addr.Is4(), 28: addr.Is6()}; !wants[kind] {
		return out
	}
	binary.BigEndian.PutUint16(out[6:], 1)
	raw := addr.AsSlice()
	out = append(out, 0xc0, 12) // the name of the question
	out = binary.BigEndian.AppendUint16(out, kind)
	out = append(out, 0, 1, 0, 0, 0, 0) // class IN, no time to live
	out = binary.BigEndian.AppendUint16(out, uint16(len(raw)))
	return append(out, raw...)
}

// A name is judged by what it resolves to, in the moment in which that is dialled.
func TestNamesOfInnardsAreRefused(t *testing.T) {
	t.Parallel()
	dns := newNameServer(t)
	dialer := Endpoint{Timeout: 5 * time.Second}.dialer()
	dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns.conn.LocalAddr().String())
	}}
	n := 0
	for addr := range corpus() {
		if addr.Zone() != "" {
			continue
		}
		n++
		dns.says(addr)
		conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("hook-%d.example.com:443", n))
		if err == nil {
			_ = conn.Close()
		}
		if !isA[*BlockedError](err) {
			t.Errorf("a name of %s: %v", addr, err)
		}
	}
	if n < 200 {
		t.Errorf("%d addresses", n)
	}
	// The same name may be harmless first: each dial asks anew.
	dns.says(netip.MustParseAddr("127.0.0.1"))
	if _, err := dialer.DialContext(t.Context(), "tcp", "hook-1.example.com:443"); !isA[*BlockedError](err) {
		t.Errorf("another answer for the same name: %v", err)
	}
}

// Other ways to write an address lead nowhere else.
func TestOddWaysToWriteAnAddress(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "0x7f.1", "localhost", "LOCALHOST", "localhost.", "[::1]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]",
		"①②⑦.0.0.1", "127。0。0。1",
	} {
		w := newHook(t, Endpoint{URL: "https://h", Timeout: 5 * time.Second})
		at := *w.url
		at.Host = host + ":9"
		w.url = &at
		err := w.send(t.Context(), newOutgoing("msg_1", []byte("{}")))
		e, ok := errors.AsType[*DeliveryError](err)
		if !ok || e.Reason != ReasonBlocked && e.Reason != ReasonDNS {
			t.Errorf("%s: %v", host, err)
		}
	}
}
