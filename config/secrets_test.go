package config_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/config"
)

const canary = "cAnArYcAnArYcAnArYcAnArYcAnArY12" // 32 letters and digits

// hidden are receivers with each key that takes its secret from the environment; %s
// is that secret.
var hidden = map[string]string{
	"secrets[0]":          "kind: webhook, url: 'https://h', secrets: [%s]",
	"secrets[0] two":      "kind: webhook, url: 'https://h', secrets: [%s, '${LS_TEST_OTHER}']",
	"secrets[0] dingtalk": "kind: dingtalk, url: 'https://h', secrets: [%s]",
	"secrets[0] feishu":   "kind: feishu, url: 'https://h', secrets: [%s]",
	"password":            "kind: alertmanager, url: 'https://h', username: ann, password: %s",
	"password email":      "kind: email, server: h, from: a@b, to: [c@d], username: ann, password: %s",
	"token":               "kind: alertmanager, url: 'https://h', token: %s",
	"routing_key":         "kind: pagerduty, routing_key: %s",
}

func receiver(kind, secret string) string {
	return minimal + "alert:\n  receivers:\n    - {name: a, " + fmt.Sprintf(kind, secret) + "}\n"
}

// each tests every key of hidden: its path, and its receiver with %s for the secret.
func each(t *testing.T, f func(t *testing.T, path, kind string)) {
	t.Helper()
	for name, kind := range hidden {
		path, _, _ := strings.Cut(name, " ")
		t.Run(name, func(t *testing.T) { f(t, "alert.receivers[0]."+path, kind) })
	}
}

func whsec(secret string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))
}

func setSecret(t *testing.T, path string) {
	t.Helper()
	t.Setenv("LS_TEST_OTHER", whsec(canary))
	if strings.Contains(path, "secrets") {
		t.Setenv("LS_TEST_SECRET", whsec(canary))
	} else {
		t.Setenv("LS_TEST_SECRET", canary)
	}
}

// The URL of a receiver is not shown where it stands in a wrong place, or under a wrong
// name.
func TestURLsInWrongPlacesAreHidden(t *testing.T) {
	t.Parallel()
	const hook = "https://hooks.example.org/services/" + canary
	for _, text := range []string{
		"kind: slack, slack: " + hook, "kind: slack, webhook: '" + hook + "'", "kind: slack, adress: '" + hook + "'", "kind: slack, url: ['" + hook + "']",
		"kind: webhook, url: 'https://h', timeout: '" + hook + "'", "kind: alertmanager, urls: '" + hook + "'", "kind: slack, url: 'HTTPS://h/?" + canary + "', max_age: 'https://h?" + canary + "'",
	} {
		got := problems(t, minimal+"alert: {receivers: [{name: a, "+text+"}]}\n")
		if all := strings.Join(got, "\n"); strings.Contains(all, canary[:8]) || !strings.Contains(all, "got ") {
			t.Errorf("%s: shown, or nothing is wrong: %s", text, all)
		}
	}
	// What cannot hold one is shown.
	if got := problems(t, minimal+"alert: {receivers: [{name: a, kind: slack, url_file: /f, timeout: 'https://hooks.example.org/'}]}\n"); len(got) != 1 || !strings.Contains(got[0], `"https://hooks.example.org/"`) {
		t.Errorf("got %q", got)
	}
}

// A secret of the environment is taken, and nothing that is printed shows it.
func TestSecretsFromTheEnvironmentAreTaken(t *testing.T) {
	each(t, func(t *testing.T, path, kind string) {
		setSecret(t, path)
		c, err := config.Parse("c.yaml", []byte(receiver(kind, "'${LS_TEST_SECRET}'")))
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(c.Alert)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(c.Alert)
		if err != nil {
			t.Fatal(err)
		}
		shown := fmt.Sprintf("%s %s %+v %#v", asJSON, asYAML, c.Alert.Receivers, c.Alert.Receivers)
		if strings.Contains(shown, canary) || strings.Contains(shown, whsec(canary)) || !strings.Contains(shown, "<secret>") {
			t.Errorf("the secret is shown, or is not there: %s", shown)
		}
	})
}

// One that is written out is refused, also in part, and not shown.
func TestSecretsWrittenOutAreRefused(t *testing.T) {
	each(t, func(t *testing.T, path, kind string) {
		setSecret(t, path)
		beside := path[strings.LastIndex(path, ".")+1:] + "_file"
		if strings.HasSuffix(path, "secrets[0]") {
			beside = "secret_files"
		}
		for _, text := range []string{canary, "'x${LS_TEST_SECRET}'", "'${LS_TEST_SECRET}${LS_TEST_SECRET}'", "{a: " + canary + "}"} {
			got := problems(t, receiver(kind, text))
			want := "c.yaml:4: " + path + ": got <secret>, write ${NAME} with the name of an environment variable"
			if !strings.HasPrefix(text, "{") {
				want += ", or put the secret into a file and name it as " + beside
			}
			if len(got) != 1 || got[0] != want {
				t.Errorf("%s:\n got %q\nwant %q", text, got, want)
			}
		}
	})
	got := problems(t, receiver("kind: webhook, url: 'https://h', secrets: %s", canary))
	if want := "c.yaml:4: alert.receivers[0].secrets: got <secret>, write a list of ${NAME} with the name of an environment variable"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q", got)
	}
}

// A variable that is not set, or is empty, is one problem with the place in the list.
func TestSecretsOfNoVariable(t *testing.T) {
	each(t, func(t *testing.T, path, kind string) {
		setSecret(t, path)
		got := problems(t, receiver(kind, "'${LS_TEST_UNSET}'"))
		if want := "c.yaml:4: " + path + ": environment variable LS_TEST_UNSET is not set, set it or take ${LS_TEST_UNSET} out"; len(got) != 1 || got[0] != want {
			t.Errorf("got %q", got)
		}
		t.Setenv("LS_TEST_EMPTY", " ")
		got = problems(t, receiver(kind, "'${LS_TEST_EMPTY}'"))
		if want := "c.yaml:4: " + path + ": environment variable LS_TEST_EMPTY is empty, set it or take ${LS_TEST_EMPTY} out"; len(got) != 1 || got[0] != want {
			t.Errorf("got %q", got)
		}
	})
	got := problems(t, minimal+"alert:\n  receivers:\n    - {name: a, kind: webhook, url: 'https://h'}\n    - {name: b, kind: webhook, url: '${LS_TEST_UNSET}'}\n")
	if want := "c.yaml:5: alert.receivers[1].url: environment variable LS_TEST_UNSET is not set, set it or take ${LS_TEST_UNSET} out"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q", got)
	}
}

// A secret has one place; what a variable holds is checked without showing it.
func TestSecretsThatAreWrong(t *testing.T) {
	setSecret(t, "secrets")
	t.Setenv("LS_TEST_SHORT", "pa55")
	for text, want := range map[string]string{
		"kind: webhook, url: 'https://h', secret_files: [/f], secrets: ['${LS_TEST_SECRET}']":                         `secret_files: ["/f"] are given beside secrets (1 of <secret>): write one of them`,
		"kind: alertmanager, url: 'https://h', username: a, password_file: /f, password: '${LS_TEST_SECRET}'":         `password_file: "/f" is given beside password (<secret>): write one of them`,
		"kind: alertmanager, url: 'https://h', token_file: /f, token: '${LS_TEST_SECRET}'":                            `token_file: "/f" is given beside token (<secret>): write one of them`,
		"kind: alertmanager, url: 'https://h', username: a, password: '${LS_TEST_SHORT}', token: '${LS_TEST_SHORT}'":  `token: <secret> is given beside username: write one of them`,
		"kind: alertmanager, url: 'https://h', password: '${LS_TEST_SHORT}'":                                          `username: is missing beside password_file or password: write whose password it is`,
		"kind: dingtalk, url: 'https://h', secret_files: [/f], secrets: ['${LS_TEST_SECRET}']":                        `secret_files: ["/f"] are given beside secrets (1 of <secret>): write one of them`,
		"kind: feishu, url: 'https://h', secret_files: [/f], secrets: ['${LS_TEST_SECRET}']":                          `secret_files: ["/f"] are given beside secrets (1 of <secret>): write one of them`,
		"kind: email, server: h, from: a@b, to: [c@d], username: a, password_file: /f, password: '${LS_TEST_SECRET}'": `password_file: "/f" is given beside password (<secret>): write one of them`,
		"kind: email, server: h, from: a@b, to: [c@d], password: '${LS_TEST_SECRET}'":                                 `password_file: goes with username, as password does: write both or none`,
		"kind: pagerduty, routing_key: '${LS_TEST_SHORT}'":                                                            `routing_key: got <secret>, which must hold the 32 letters and digits of an integration key, and has 4 characters`,
		"kind: webhook, url: 'https://h', secrets: ['${LS_TEST_SECRET}', '${LS_TEST_SHORT}']":                         "secrets[1]: got <secret>, which must be 24 to 64 bytes in base64, got 3: `openssl rand -base64 32` makes one",
		"kind: feishu, url: 'https://h', secrets: ['${LS_TEST_SECRET}', '${LS_TEST_SECRET}']":                         `secrets: must be one, got 2: a robot of feishu has one signing secret`,
		"kind: dingtalk, url: 'https://h', secret_files: [/f, /g]":                                                    `secret_files: must be one, got 2: a robot of dingtalk has one signing secret`,
	} {
		got := problems(t, receiver(strings.ReplaceAll(text, "%", "%%")+"%.0s", ""))
		if len(got) != 1 || !strings.Contains(got[0], ": alert.receivers[0]."+want) {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
		if all := strings.Join(got, ""); strings.Contains(all, canary) || strings.Contains(all, whsec(canary)) || strings.Contains(all, "pa55") {
			t.Errorf("a secret is shown: %s", all)
		}
	}
}

// What is signed with secrets of the environment is what their holders verify, with
// each of them.
func TestSecretsFromTheEnvironmentSign(t *testing.T) {
	old, next := whsec(canary), whsec(strings.ToLower(canary))
	t.Setenv("LS_TEST_OLD", old)
	t.Setenv("LS_TEST_NEXT", next)
	type sent struct {
		header http.Header
		body   []byte
	}
	got := make(chan sent, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- sent{r.Header.Clone(), body}
	}))
	t.Cleanup(srv.Close)
	t.Setenv("LS_TEST_HOOK", srv.URL)
	c, err := config.Parse("c.yaml", []byte(receiver("kind: webhook, url: '${LS_TEST_HOOK}', allow_private: true, secrets: ['${LS_TEST_OLD}', '${LS_TEST_NEXT}%s']", "")))
	if err != nil {
		t.Fatal(err)
	}
	caller, err := alert.NewCaller(c.Alert.Receivers[0].Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.Close)
	if err := caller.Post(t.Context(), "msg_1", []byte(`{"at":"`+time.Now().Format(time.RFC3339)+`"}`)); err != nil {
		t.Fatal(err)
	}
	m := <-got
	for _, secret := range []string{old, next} {
		hook, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := hook.Verify(m.body, m.header); err != nil {
			t.Error(err)
		}
	}
	if len(strings.Fields(m.header.Get(alert.HeaderSignature))) != 2 {
		t.Errorf("signed with %q", slices.Collect(strings.FieldsSeq(m.header.Get(alert.HeaderSignature))))
	}
}
