package alert

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"gopkg.in/yaml.v3"
)

func decode(t *testing.T, text string) Config {
	t.Helper()
	var c Config
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfigOfTheDesign(t *testing.T) {
	t.Parallel()
	c := decode(t, `receivers:
  - {name: ops, kind: webhook, url_file: /run/secrets/hook, secret_files: [/run/secrets/hook-key], lang: en}
  - {name: dev, kind: webhook, url: "http://127.0.0.1:9/x", allow_private: true, timeout: 2s, max_attempts: 3, max_age: 1h}
`)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	full := c.withDefaults()
	if w := full.Receivers[0]; w.Timeout != DefaultTimeout || w.MaxAttempts != DefaultMaxAttempts || w.MaxAge != DefaultMaxAge {
		t.Errorf("defaults are %+v", w)
	}
	if w := full.Receivers[1]; w.Timeout != 2*time.Second || w.MaxAttempts != 3 || w.Lang != "en" {
		t.Errorf("got %+v", w)
	}
	if c.Receivers[0].Timeout != 0 {
		t.Error("withDefaults changed its argument")
	}
	if text, _ := yaml.Marshal(c); strings.Contains(string(text), "127.0.0.1:9") {
		t.Errorf("a URL is printed:\n%s", text)
	}
	if err := DefaultConfig().Validate(); err != nil || !reflect.DeepEqual(DefaultConfig(), DefaultConfig().withDefaults()) {
		t.Errorf("the default is not valid or not a fixed point: %v", err)
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	t.Parallel()
	err := decode(t, `drain_timeout: 1h
first_sweep: maybe
console_url: "ftp://x"
receivers:
  - {name: "bad name", lang: fr, match: ["nope=1"], key_names: some, max_findings: 5000, grouping: {by: [severity, key, key], wait: -1s, interval: 48h, repeat: 1s}}
  - {name: a, kind: webhook}
  - {name: a, kind: webhook, url: "https://h/s3cr3t", url_file: f}
  - {name: c, kind: webhook, url: "http://h/s3cr3t"}
  - {name: d, kind: webhook, url: "ftp://h/s3cr3t"}
  - {name: e, kind: webhook, url: "s3cr3t"}
  - {name: f, kind: webhook, url: "https://u:s3cr3t@h/"}
  - {name: g, kind: webhook, url: "https://h/", timeout: 1h, max_attempts: -1, max_age: 1s, secret_files: [""]}
  - {name: h, kind: webhook, url: "https://h/", timeout: 20s, max_age: 1s}
  - {name: i, kind: webhook, url: "https://h/", timeout: 1h, max_age: 200h}
`).Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{
		"drain_timeout: must be 0s to 5m, got 1h0m0s",
		`receivers[0].name: must be 1 to 63 letters, digits or . _ -, got "bad name"`,
		`receivers[0].lang: must be en or zh, got "fr"`,
		"receivers[0].kind: is missing: write webhook, alertmanager, pagerduty, email, slack, dingtalk, feishu or wecom",
		`receivers[0].match[0]: matcher "nope=1": "nope" is no label`,
		`receivers[0].key_names: must be full, template or hash, got "some"`,
		"receivers[0].max_findings: must be 1 to 1000",
		`receivers[0].grouping.by[0]: "severity" is no label to group by`,
		`receivers[0].grouping.by[2]: "key" stands twice`,
		"receivers[0].grouping.wait: must be 0s to 1h, got -1s",
		"receivers[0].grouping.interval: must be 0s to 24h, got 48h0m0s",
		"receivers[0].grouping.repeat: must be 1m to 720h, or 0s for never, got 1s",
		`first_sweep: must be digest, fire or mute, got "maybe"`,
		`console_url: must be https://host or http://host`,
		"receivers[1].url_file: is missing",
		`receivers[2].name: "a" is already receivers[1]`,
		`receivers[2].url_file: "f" is given beside url`,
		"receivers[3].url: http://h must be https",
		"receivers[4].url: ftp://h must begin with https://",
		"receivers[5].url: is not a URL",
		"receivers[6].url: has credentials in it",
		"receivers[7].timeout: must be 100ms to 1m, got 1h0m0s",
		"receivers[7].max_attempts: must be at least 1, got -1",
		"receivers[8].max_age: must be timeout (20s) to 168h, got 1s",
		"receivers[9].max_age: must be at most 168h, and at least timeout, got 200h0m0s",
		"receivers[7].secret_files[0]: must be the path of a file",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the error shows a URL:\n%v", err)
	}
	if strings.Contains(err.Error(), "receivers[7].max_age") {
		t.Errorf("a wrong timeout makes max_age wrong as well:\n%v", err)
	}
}

func TestNewReportsAllFiles(t *testing.T) {
	t.Parallel()
	c := decode(t, `receivers:
  - {name: a, kind: webhook, url_file: /nowhere/url, secret_files: [/nowhere/key], ca_file: /nowhere/ca}
  - {name: b, kind: webhook, url_file: `+file(t, "  \n")+`}
  - {name: c, kind: webhook, url_file: `+file(t, "s3cr3t")+`, secret_files: [`+file(t, "whsec_s3cr3t")+`]}
`)
	_, err := New(zap.NewNop(), c, &box{}, Hooks{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"receivers[0].url_file", "receivers[0].secret_files[0]", "receivers[0].ca_file",
		"receivers[1].url_file", "is empty", "receivers[2].url_file: is not a URL", "receivers[2].secret_files[0]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the error shows a secret:\n%v", err)
	}
	if _, err := New(zap.NewNop(), Config{DrainTimeout: -1}, &box{}, Hooks{}); err == nil {
		t.Error("New does not validate")
	}
}
