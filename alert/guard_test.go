package alert

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestPermit(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"93.184.216.34":            "public",
		"2606:2800:220:1::1":       "public",
		"::ffff:93.184.216.34":     "public",
		"127.0.0.1":                "private",
		"127.8.8.8":                "private",
		"::1":                      "private",
		"::ffff:127.0.0.1":         "private",
		"::ffff:10.0.0.1":          "private",
		"10.1.2.3":                 "private",
		"172.16.0.1":               "private",
		"172.31.255.255":           "private",
		"172.32.0.1":               "public",
		"192.168.1.1":              "private",
		"100.64.0.1":               "private",
		"169.254.1.1":              "private",
		"fd12::1":                  "private",
		"fe80::1%eth0":             "private",
		"64:ff9b::7f00:1":          "private",
		"2002:7f00:1::":            "private",
		"::127.0.0.1":              "private",
		"0.0.0.0":                  "never",
		"::":                       "never",
		"224.0.0.1":                "never",
		"ff02::1":                  "never",
		"255.255.255.255":          "never",
		"169.254.169.254":          "never",
		"::ffff:169.254.169.254":   "never",
		"::ffff:a9fe:a9fe":         "never",
		"fd00:ec2::254":            "never",
		"100.100.100.200":          "never",
		"168.63.129.16":            "never",
		"169.254.170.23":           "never",
		"fd20:ce::254":             "never",
		"64:ff9b::a9fe:a9fe":       "never",
		"2002:a9fe:a9fe::1":        "never",
		"::ffff:0:169.254.169.254": "never",
		"::ffff:0:127.0.0.1":       "private",
	} {
		a := netip.MustParseAddr(addr)
		got := "public"
		if permit(a, false) != nil {
			got = "private"
		}
		if permit(a, true) != nil {
			got = "never"
		}
		if got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
}

func TestBlockedErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	err := permit(netip.MustParseAddr("10.0.0.1"), false)
	if e, ok := errors.AsType[*BlockedError](err); !ok || e.Never || !strings.Contains(err.Error(), "allow_private: true") {
		t.Errorf("got %v", err)
	}
}
