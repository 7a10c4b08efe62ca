package rules

import (
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/lock/record"
)

func TestConfigDecodesAsDocumented(t *testing.T) {
	t.Parallel()
	var cfg struct {
		Rules Config `yaml:"rules"`
	}
	decodeStrict(t, "rules", []byte(`
rules:
  - {rule: hold/too-long, severity: warning, for: 1m}
  - {rule: ttl/none, for: 0s, classes: [orders]}
  - {rule: ttl/too-long, off: true}
`), &cfg)
	if err := cfg.Rules.Validate(); err != nil {
		t.Fatal(err)
	}
	c := cfg.Rules
	if c[0].Severity != "warning" || *c[0].For != time.Minute || *c[1].For != 0 || c[1].Classes[0] != "orders" || !c[2].Off || c[2].For != nil {
		t.Errorf("decoded %+v", c)
	}
}

func TestUnknownKeysAreErrors(t *testing.T) {
	t.Parallel()
	dec := yaml.NewDecoder(strings.NewReader("- {rule: custom/x, wenn: 'lock.age > 1'}"))
	dec.KnownFields(true)
	var c Config
	if err := dec.Decode(&c); err == nil || !strings.Contains(err.Error(), "wenn") {
		t.Errorf("error %v", err)
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	t.Parallel()
	c := Config{
		{Rule: "ttl/none", Classes: []string{"a", "b"}},
		{Rule: "ttl/nnone", Severity: "fatal", For: new(-time.Second)},
		{Rule: "ttl/none", Classes: []string{"b"}, Off: true, Severity: "info"},
		{Rule: "hold/lost", Classes: []string{}},
		{Rule: "ttl/none"},
		{Rule: "ttl/none", Classes: []string{"c"}},
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("no problem found")
	}
	want := []string{
		`rules[1].rule: must be one of ` + strings.Join(Names(), ", ") + `, got "ttl/nnone"`,
		`rules[1].severity: must be info, warning or critical, got "fatal"`,
		`rules[1].for: must not be negative, got -1s; write 0s to fire at first sight`,
		`rules[2].off: must stand alone, got true beside severity or for; remove one of them`,
		`rules[2].rule: can never apply, got "ttl/none" again after rules[0]; merge the two, or give each its own classes`,
		`rules[3].classes: must name at least one class, got []; leave the key out for all classes`,
		`rules[5].rule: can never apply, got "ttl/none" again after rules[4]; merge the two, or give each its own classes`,
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

// TestHeartbeatIsTheRecords holds the constants here to the wire format's.
func TestHeartbeatIsTheRecords(t *testing.T) {
	t.Parallel()
	if heartbeat != record.Heartbeat || heartbeatTTL != record.HeartbeatTTL {
		t.Errorf("heartbeat %s and %s, lock/record has %s and %s", heartbeat, heartbeatTTL, record.Heartbeat, record.HeartbeatTTL)
	}
}

func TestDur(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                               "0s",
		1400 * time.Microsecond:         "1ms",
		1240 * time.Millisecond:         "1.2s",
		10499 * time.Millisecond:        "10s",
		10 * time.Minute:                "10m",
		time.Hour:                       "1h",
		20 * time.Hour:                  "20h",
		90 * time.Minute:                "1h30m",
		time.Hour + 10*time.Second:      "1h0m10s",
		-90 * time.Second:               "-1m30s",
		8*time.Hour + 20*time.Minute:    "8h20m",
		59*time.Second + 600*1000*1000:  "1m",
		time.Minute - time.Millisecond:  "1m",
		9*time.Second + 960*1000*1000:   "10s",
		999*time.Millisecond + 600*1000: "1s",
	} {
		if got := dur(d); got != want {
			t.Errorf("dur(%d) = %q, want %q", int64(d), got, want)
		}
	}
}
