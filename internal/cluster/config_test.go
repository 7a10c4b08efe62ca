package cluster

import (
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{}, {Listen: "127.0.0.1:10123"}, {Listen: ":10123", Advertise: "10.0.0.7:10123"}, {Lease: time.Minute}, {Listen: "[::1]:0"}} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for says, c := range map[string]Config{
		"listen: got \"10123\"":               {Listen: "10123"},
		"listen: got port \"x\"":              {Listen: "127.0.0.1:x"},
		"advertise: empty, but listen":        {Listen: ":10123"},
		"advertise: got \":1\" without":       {Listen: ":10123", Advertise: ":1"},
		"advertise: got port \"0\"":           {Advertise: "a:0"},
		"lease: got 10ms, write 1s to 1m0s":   {Lease: 10 * time.Millisecond},
		"lease: got 1h0m0s, write 1s to 1m0s": {Lease: time.Hour},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %s", c, err, says)
		}
	}
}
