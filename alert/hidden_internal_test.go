package alert

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/api"
)

// A message to a receiver has no character that a screen does not show as one.
func TestMessagesHaveNoHiddenCharacters(t *testing.T) {
	t.Parallel()
	const evil = "lock:\u009b2J\u202egnp\u2066"
	p := Payload{Type: "findings.firing", Findings: []PayloadFinding{{Finding: api.Finding{Key: api.NewKey(evil), Summary: evil}}}}
	m, err := p.notification(writer{name: "hook"}, "g", "t", "e1")
	if err != nil {
		t.Fatal(err)
	}
	for what, body := range map[string][]byte{"webhook": m.Body, "chat": plainJSON(map[string]string{"text": evil})} {
		if strings.ContainsAny(string(body), "\u009b\u202e\u2066") || !json.Valid(body) {
			t.Errorf("%s: %q", what, body)
		}
	}
	var back Payload
	if err := json.Unmarshal(m.Body, &back); err != nil || back.Findings[0].Finding.Key.Key != evil {
		t.Errorf("got %+v, %v", back.Findings, err)
	}
}
