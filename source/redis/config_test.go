package redis

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/source"
)

func TestConfigReadsAndReports(t *testing.T) {
	t.Parallel()
	var c Config
	if err := yaml.Unmarshal([]byte("meta_prefixes: ['app:ls:']\n"), &c); err != nil {
		t.Fatal(err)
	}
	if got := c.prefixes(); len(got) != 2 || got[0] != "locksteward:" || got[1] != "app:ls:" {
		t.Errorf("prefixes %q", got)
	}
	if c := c.WithDefaults(); c.Validate() != nil || c.Watch != source.WatchAuto || c.SweepOn != SweepMasters {
		t.Errorf("the defaults: %+v: %v", c, c.Validate())
	}
	err := Config{MetaPrefixes: []string{"a", ""}, SweepOn: "both"}.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"meta_prefixes[1]: ", `sweep_on: got "both", write masters or replicas`} {
		if !strings.Contains("\n"+err.Error(), "\n"+want) {
			t.Errorf("no line begins with %q in:\n%v", want, err)
		}
	}
}

func TestWatchConfig(t *testing.T) {
	t.Parallel()
	for mode, good := range map[source.WatchMode]bool{
		"": true, source.WatchAuto: true, source.WatchTracking: true, source.WatchKeyspace: true, source.WatchOff: true,
		source.WatchSweep: false, "push": false,
	} {
		if err := (Config{Watch: mode}).Validate(); (err == nil) != good || err != nil && !strings.HasPrefix(err.Error(), "watch: got ") {
			t.Errorf("%q: %v", mode, err)
		}
	}
}
