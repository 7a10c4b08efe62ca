package pace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Share is a part of the time of a server's main thread, written "2%" or "0.02".
type Share float64

// UnmarshalText reads "2%" or "0.02".
func (s *Share) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(string(text)), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("share %q: must be a percentage such as 2%%", text)
	}
	if percent {
		v /= 100
	}
	*s = Share(v)
	return nil
}

// MarshalText writes a percentage.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns a percentage, "2%".
func (s Share) String() string { return strconv.FormatFloat(float64(s)*100, 'g', 6, 64) + "%" }

// Defaults of [Config], and the largest share that may be asked for.
const (
	DefaultIdle = Share(0.10)
	DefaultBusy = Share(0.01)
	MaxShare    = Share(0.80)
)

// Config bounds the share of a server that reading it may take. The zero value of a field is its default.
type Config struct {
	// Idle is the share of a server that nobody else uses.
	Idle Share `yaml:"idle"`
	// Busy is the share of a server that is in full use, or whose use is not known.
	Busy Share `yaml:"busy"`
}

// WithDefaults returns c with its defaults filled in.
func (c Config) WithDefaults() Config {
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.Busy == 0 {
		c.Busy = min(DefaultBusy, c.Idle)
	}
	return c
}

// Validate reports all problems, each beginning with the name of its field.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	for _, f := range []struct {
		name string
		v    Share
	}{{"idle", c.Idle}, {"busy", c.Busy}} {
		if f.v < 0.0001 || f.v > MaxShare {
			errs = append(errs, fmt.Errorf("%s: must be between 0.01%% and %s, got %s", f.name, MaxShare, f.v))
		}
	}
	if c.Idle < c.Busy {
		errs = append(errs, fmt.Errorf("idle: must not be below busy (%s), got %s", c.Busy, c.Idle))
	}
	return errors.Join(errs...)
}
