package pace

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{Idle: 0.9}, "idle: must be between 0.01% and 80%, got 90%"},
		{Config{Idle: -0.1}, "idle: must be between"},
		{Config{Busy: 0.00001}, "busy: must be between 0.01% and 80%, got 0.001%"},
		{Config{Idle: 0.02, Busy: 0.05}, "idle: must not be below busy (5%), got 2%"},
	} {
		if err := c.c.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.c, err, c.want)
		}
	}
	if c := (Config{Idle: 0.005}).WithDefaults(); c.Busy != 0.005 || c.Validate() != nil {
		t.Errorf("busy above idle by default: %+v", c)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "", "2%%", "NaN", "inf%"} {
		if err := new(Share).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("share %q accepted", text)
		}
	}
	var s Share
	if err := s.UnmarshalText([]byte(" 2.5 %")); err != nil || s != 0.025 {
		t.Errorf("%v, %v", s, err)
	}
	if got, _ := Share(0.02).MarshalText(); string(got) != "2%" {
		t.Errorf("written as %q", got)
	}
}
