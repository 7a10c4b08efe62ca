package alert

import (
	"encoding/base64"
	"testing"

	"github.com/locksteward/locksteward"
)

// Secrets that the configuration holds itself are used as those of files are.
func TestSecretsHeldAreUsed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"dingtalk", "feishu"} {
		s := startService(t, kind) // it checks signatures: TestWrongSignaturesAreNoticed
		r := receiver(t, kind, s.url, "en")
		r.SecretFiles, r.Secrets = nil, []locksteward.Secret{robotSecret + "\n"}
		if err := openKind(t, r).send(t.Context(), newOutgoing("msg_1", encoded(t, shownSamples("en")["firing"]))); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	at := Endpoint{URL: "https://h"}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+canary))
	am := openAs(t, "alertmanager", Receiver{Endpoint: at, Username: "ann", Password: canary}).(*alertmanager)
	if got := am.login.Get("Authorization"); got != basic || am.secrets[0] != canary {
		t.Errorf("a password gives %q", got)
	}
	am = openAs(t, "alertmanager", Receiver{Endpoint: at, Token: canary}).(*alertmanager)
	if got := am.login.Get("Authorization"); got != "Bearer "+canary || am.secrets[0] != canary {
		t.Errorf("a token gives %q", got)
	}
	if pd := openAs(t, "pagerduty", Receiver{RoutingKey: canaryKey}).(*pagerDuty); pd.key != canaryKey {
		t.Errorf("the integration key has %d characters", len(pd.key.Reveal()))
	}
	if m := openAs(t, "email", Receiver{Server: "h", From: "a@b", To: []string{"c@d"}, Username: "ann", Password: canary}).(*email); m.password != canary {
		t.Errorf("the password has %d characters", len(m.password.Reveal()))
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(canary+canary))
	if w := openAs(t, "webhook", Receiver{Endpoint: Endpoint{URL: "https://h", Secrets: []locksteward.Secret{locksteward.Secret(secret)}}}).(*webhook); len(w.secrets) != 1 || string(w.secrets[0]) != canary+canary {
		t.Errorf("%d secrets", len(w.secrets))
	}
}
