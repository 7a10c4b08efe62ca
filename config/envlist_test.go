package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/config"
)

// Elements of lists are set over those of the file, and added behind them.
func TestListsFromTheEnvironment(t *testing.T) {
	const file = `
targets: [{name: a, url: 'redis://a', username: ann}, {name: b, url: 'redis://b'}]
classes: [{class: orders, match: ['lock:order:*', 'lock:o:*'], team: checkout}]
`
	for name, value := range map[string]string{
		"LOCKSTEWARD_TARGETS_1_URL":                   "redis://elsewhere",
		"LOCKSTEWARD_TARGETS_2_NAME":                  "c",
		"LOCKSTEWARD_TARGETS_2_URL":                   "redis+cluster://c1,c2",
		"LOCKSTEWARD_TARGETS_2_PACE_IDLE":             "7%",
		"LOCKSTEWARD_TARGETS_2_ADDR_MAP":              "{'10.0.0.1:6379': 'localhost:7001'}",
		"LOCKSTEWARD_TARGETS_2_RELEASE_CREDENTIALS":   "{}",
		"LOCKSTEWARD_CLASSES_0_MATCH_1":               "lock:old:*",
		"LOCKSTEWARD_CLASSES_0_MATCH_2":               "lock:new:*",
		"LOCKSTEWARD_CLASSES_1_CLASS":                 "jobs",
		"LOCKSTEWARD_CLASSES_1_MATCH":                 "['lock:job:*', 'lock:cron,daily:*']",
		"LOCKSTEWARD_ALERT_RECEIVERS_0_NAME":          "ops",
		"LOCKSTEWARD_ALERT_RECEIVERS_0_KIND":          "webhook",
		"LOCKSTEWARD_ALERT_RECEIVERS_0_URL":           "https://hook.example.org",
		"LOCKSTEWARD_ALERT_RECEIVERS_0_SECRETS_0":     whsec(canary),
		"LOCKSTEWARD_ALERT_RECEIVERS_0_ALLOW_PRIVATE": "true",
		"LOCKSTEWARD_TARGETS_SERVICE_HOST":            "10.0.0.1", // of Kubernetes, for a service of that name
	} {
		t.Setenv(name, value)
	}
	c, err := config.Parse("c.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, target := range c.Targets {
		fmt.Fprintf(&got, "%s %s %s %v %v; ", target.Name, target.URL, target.Username, target.AddrMap, target.ReleaseCredentials != nil)
	}
	for _, cl := range c.Classes {
		fmt.Fprintf(&got, "%s %q %s; ", cl.Name, cl.Match, cl.Team)
	}
	hook := c.Alert.Receivers[0]
	fmt.Fprintf(&got, "%s %s %t %v", c.Alert.Receivers[0].Name, hook.URL.Reveal(), hook.AllowPrivate, hook.Secrets)
	want := `a redis://a ann map[] false; b redis://elsewhere  map[] false; c redis+cluster://c1,c2  map[10.0.0.1:6379:localhost:7001] true; ` +
		`orders ["lock:order:*" "lock:old:*" "lock:new:*"] checkout; jobs ["lock:job:*" "lock:cron,daily:*"] ; ops https://hook.example.org true [<secret>]`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	if secret := hook.Secrets[0].Reveal(); secret != whsec(canary) {
		t.Error("the secret is another one")
	}
	// No file at all but an empty one is needed.
	if c, err = config.Parse("c.yaml", nil); err == nil || c.Targets != nil {
		t.Error("element 1 is set, and there is no element 0")
	}
}

// Default lists stay what they are for the next configuration.
func TestVariablesLeaveDefaultsAlone(t *testing.T) {
	before := fmt.Sprintf("%+v", config.Default())
	for _, k := range keys() {
		if name := k.variable(); name != "" && strings.HasSuffix(k.kind(), "texts") {
			t.Setenv(name+"_0", "other")
		}
	}
	config.Overlaid()
	if after := fmt.Sprintf("%+v", config.Default()); after != before {
		t.Errorf("the defaults are\n%s\nand were\n%s", after, before)
	}
}

// What is wrong is reported with the name of the variable, its value and the way out, and
// what may be a secret is not shown.
func TestVariablesOfListsThatAreWrong(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"LOCKSTEWARD_TARGETS_3_NAME":                {"x", `environment LOCKSTEWARD_TARGETS_3_NAME: targets: there is no element 2 to go before it: the list has 1, number what you add from 1 on`},
		"LOCKSTEWARD_TARGETS_0_URLL":                {"redis://a", `environment LOCKSTEWARD_TARGETS_0_URLL: means nothing (got "redis://a"), did you mean LOCKSTEWARD_TARGETS_0_URL?`},
		"LOCKSTEWARD_TARGETS_0_PASSWORD":            {canary, `environment LOCKSTEWARD_TARGETS_0_PASSWORD: means nothing (got <secret>), did you mean LOCKSTEWARD_TARGETS_0_PASSWORD_FILE?`},
		"LOCKSTEWARD_TARGETS_00_NAME":               {"x", `environment LOCKSTEWARD_TARGETS_00_NAME: means nothing (got "x"), docs/configuration.md lists the variables`},
		"LOCKSTEWARD_TARGETS_0":                     {"x", `environment LOCKSTEWARD_TARGETS_0: means nothing (got "x")`},
		"LOCKSTEWARD_TARGETS":                       {"[{name: b}]", `environment LOCKSTEWARD_TARGETS: targets: a list of blocks has no variable of its own, write one for each key: LOCKSTEWARD_TARGETS_0_…`},
		"LOCKSTEWARD_TARGETS_0_JITTER":              {"soon", `environment LOCKSTEWARD_TARGETS_0_JITTER: targets[0].jitter: got "soon", write a duration such as 30s, 5m or 1h30m`},
		"LOCKSTEWARD_TARGETS_0_URL":                 {"http://ann:" + canary + "@h", `environment LOCKSTEWARD_TARGETS_0_URL: targets[0].url: `},
		"LOCKSTEWARD_TARGETS_0_ADDR_MAP":            {"a=b", `environment LOCKSTEWARD_TARGETS_0_ADDR_MAP: targets[0].addr_map: got "a=b", write {one: two}`},
		"LOCKSTEWARD_TARGETS_0_META_PREFIXES":       {"a,b", `environment LOCKSTEWARD_TARGETS_0_META_PREFIXES: targets[0].meta_prefixes: got "a,b", write [one, two], or LOCKSTEWARD_TARGETS_0_META_PREFIXES_0 for the first of them`},
		"LOCKSTEWARD_TARGETS_0_META_PREFIXES_1":     {"a", `environment LOCKSTEWARD_TARGETS_0_META_PREFIXES_1: targets[0].meta_prefixes: there is no element 0 to go before it: the list has 0, number what you add from 0 on`},
		"LOCKSTEWARD_CONSOLE_OIDC":                  {"yes", `environment LOCKSTEWARD_CONSOLE_OIDC: console.oidc: got "yes", write {} for a block with nothing in it, or set a key of it: LOCKSTEWARD_CONSOLE_OIDC_…`},
		"LOCKSTEWARD_TARGETS_0_RELEASE_CREDENTIALS": {"yes", `environment LOCKSTEWARD_TARGETS_0_RELEASE_CREDENTIALS: targets[0].release_credentials: got <secret>, write {} for a block with nothing in it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, tc.value)
			got := problems(t, minimal)
			if len(got) != 1 || !strings.HasPrefix(got[0], tc.want) || strings.Contains(got[0], canary) {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
}

// Secrets of receivers in the environment are taken as they are, and shown nowhere; an
// empty one is a mistake.
func TestSecretsOfReceiversInVariables(t *testing.T) {
	const file = minimal + "alert: {receivers: [{name: a, kind: webhook, url: 'https://h'}]}\n"
	const list = "LOCKSTEWARD_ALERT_RECEIVERS_0_SECRETS"
	for name, tc := range map[string]struct{ value, want string }{
		list:        {canary, "environment " + list + ": alert.receivers[0].secrets: got <secret>, write [one, two], or " + list + "_0 for the first of them"},
		list + "_0": {" ", "environment " + list + "_0: alert.receivers[0].secrets[0]: is empty, set it or take it away"},
		list + "_1": {canary, "environment " + list + "_1: alert.receivers[0].secrets: there is no element 0"},
		"LOCKSTEWARD_ALERT_RECEIVERS_0_ROUTING_KEY": {"pa55", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, tc.value)
			got := problems(t, file)
			if len(got) == 0 || tc.want != "" && !strings.HasPrefix(got[0], tc.want) {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
			if all := strings.Join(got, "\n"); strings.Contains(all, canary) || strings.Contains(all, "pa55") {
				t.Errorf("a secret is shown: %s", all)
			}
		})
	}
}
