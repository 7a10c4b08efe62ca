package alert

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestHeartbeatConfig(t *testing.T) {
	t.Parallel()
	c := decode(t, `heartbeat: {webhook: {url: "https://h/beat"}, every: 10s}`)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if h := c.Heartbeat.WithDefaults(); h.Every != 10*time.Second || h.Webhook.Timeout != 5*time.Second || c.Heartbeat.Webhook.Timeout != 0 {
		t.Errorf("got %+v", h)
	}
	if h := (Heartbeat{Webhook: &Endpoint{}}).WithDefaults(); h.Every != DefaultHeartbeatEvery || h.Webhook.Timeout != DefaultTimeout {
		t.Errorf("defaults are %+v", h)
	}
	for text, want := range map[string]string{
		`heartbeat: {}`: "heartbeat.webhook: is missing",
		`heartbeat: {every: 1ms, webhook: {url: "https://h"}}`:             "heartbeat.every: must be 1s to 24h, got 1ms",
		`heartbeat: {every: 5s, webhook: {url: "https://h", timeout: 6s}}`: "heartbeat.webhook.timeout: must be at most every (5s), got 6s",
		`heartbeat: {webhook: {url: "http://h"}}`:                          "heartbeat.webhook.url: http://h must be https",
		`heartbeat: {webhook: {url_file: /nowhere, secret_files: [""]}}`:   "heartbeat.webhook.secret_files[0]",
	} {
		if err := decode(t, text).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if err := decode(t, `heartbeat: {every: 10ms, webhook: {url: "https://h"}}`).Validate(); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("a timeout that nobody wrote is wrong: %v", err)
	}
	h := decode(t, `heartbeat: {webhook: {url_file: /nowhere/url, secret_files: [/nowhere/key]}}`).Heartbeat.WithDefaults()
	if _, err := h.Open(); err == nil || !strings.Contains(err.Error(), "heartbeat.webhook.url_file:") || !strings.Contains(err.Error(), "heartbeat.webhook.secret_files[0]:") {
		t.Errorf("got %v", err)
	}
}

// The example of docs/deadman.md is a real body.
func TestHeartbeatIsAsDocumented(t *testing.T) {
	t.Parallel()
	id, body, err := Beat{
		At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Agent: "9f86d081884c7d65", Targets: BeatTargets{Total: 2, Up: 2}, OldestSweepSeconds: 12.5,
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var b Beat
	if err := json.Unmarshal(body, &b); err != nil || b.ID != id || b.Type != "heartbeat" || b.Version != "1" {
		t.Errorf("%v: %s", err, body)
	}
	raw, err := os.ReadFile(filepath.Join("..", "docs", "deadman.md"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```json\n(.*?)\n```").FindSubmatch(raw)
	if example == nil || strings.Join(strings.Fields(string(example[1])), "") != string(body) {
		t.Errorf("docs/deadman.md does not show %s", body)
	}
}
