package alert

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// The vector that the Standard Webhooks libraries test themselves with.
func TestSignatureMatchesTheStandard(t *testing.T) {
	t.Parallel()
	key, err := parseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1614265330, 0)
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := signature([][]byte{key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	two := signature([][]byte{key, []byte("another")}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`))
	if parts := strings.Split(two, " "); len(parts) != 2 || parts[0] != want || !strings.HasPrefix(parts[1], "v1,") {
		t.Errorf("got %s", two)
	}
}

func TestParseSecretRefusesWithoutShowing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"whsec_not base64!",
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)),
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)),
		"hunter2",
	} {
		if _, err := parseSecret(text); err == nil || strings.Contains(err.Error(), strings.TrimPrefix(text, secretPrefix)) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if _, err := parseSecret(base64.StdEncoding.EncodeToString(make([]byte, 32))); err != nil {
		t.Errorf("a secret without prefix: %v", err)
	}
}
