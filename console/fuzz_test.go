package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// Whatever the body of a change is: it is refused as invalid, or it is what
// encoding/json reads, said once. Nothing panics, nothing takes a guess.
func FuzzBody(f *testing.F) {
	for _, text := range []string{
		`{"target":"main","db":0,"key":"lock:order:1","reason":"gone"}`, `{}`, `[]`, `null`, `{"a":1}`, `{"reason":"a","reason":"b"}`,
		`{"Reason":"a"}`, `{"key":"\ud800"}`, "{\"key\":\"\xff\"}", `{"key_b64":"/w=="}`, `{"db":1e99}`, `{"db":"0"}`, `{} {}`,
		`{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}`, "", `{"db":00}`, `{"until":"yesterday"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, empty := range []func() any{
			func() any { return new(api.CreateRequest) }, func() any { return new(api.AddSilence) }, func() any { return new(api.PauseReleases) },
		} {
			into := empty()
			r := httptest.NewRequest("POST", "/", bytes.NewReader(raw))
			r.Header.Set("Content-Type", "application/json")
			if err := body(r, into); err != nil {
				if !errors.Is(err, locksteward.ErrInvalid) {
					t.Errorf("%q: %v is not invalid input", raw, err)
				}
				continue
			}
			plain := empty()
			if err := json.Unmarshal(raw, plain); err != nil || !reflect.DeepEqual(plain, into) {
				t.Errorf("%q is taken as %+v, json says %+v, %v", raw, into, plain, err)
			}
			var members map[string]json.RawMessage
			if err := json.Unmarshal(raw, &members); err != nil || members == nil {
				t.Errorf("%q is taken, and is no object: %v", raw, err)
			}
		}
	})
}
