package record_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/locksteward/locksteward/lock/record"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorFile = "testdata/vectors.json"

// vectors is what an implementation in another language tests itself against.
// Keys are base64, since they may have any bytes.
type vectors struct {
	About     string           `json:"about"`
	Version   int              `json:"version"`
	Keys      []keyVector      `json:"keys"`
	Values    []valueVector    `json:"values"`
	Metadata  []metaVector     `json:"metadata"`
	Instances []instanceVector `json:"instances"`
	Waiters   []waiterVector   `json:"waiters"`
	Turns     []turnVector     `json:"turn_messages"`
	Grants    []grantVector    `json:"grant_messages"`
	Losses    []lossVector     `json:"lost_messages"`
}

type waiterVector struct {
	Text   string        `json:"text"`
	OK     bool          `json:"ok"`
	Waiter record.Waiter `json:"waiter"`
}

type turnVector struct {
	Message string `json:"message"`
	OK      bool   `json:"ok"`
	ID      string `json:"id"`
	Before  int    `json:"before"`
}

type lossVector struct {
	Message string `json:"message"`
	OK      bool   `json:"ok"`
	ID      string `json:"id"`
}

type grantVector struct {
	Message string `json:"message"`
	OK      bool   `json:"ok"`
	Grant   grant  `json:"grant"`
}

type grant struct {
	ID    string `json:"id"`
	Fence int64  `json:"fence"`
	Nonce string `json:"nonce"`
}

type keyVector struct {
	KeyB64 string            `json:"key_b64"`
	Slot   int               `json:"slot"`
	TagB64 string            `json:"tag_b64"`
	Names  map[string]string `json:"companions_b64"`
}

type valueVector struct {
	Value string `json:"value"`
	OK    bool   `json:"ok"`
	ID    string `json:"id"`
}

// metaVector has what a reader must make of a text. Canonical says that a writer
// makes exactly this text of it.
type metaVector struct {
	Text      string         `json:"text"`
	OK        bool           `json:"ok"`
	Canonical bool           `json:"canonical"`
	Meta      map[string]any `json:"meta"`
}

// metaFields are the fields of m by their names.
func metaFields(m *record.Meta) map[string]any {
	type lost record.Lost // without its form as a text
	fields := map[string]any{}
	v := reflect.ValueOf(*m)
	for i := range v.NumField() {
		fields[v.Type().Field(i).Name] = v.Field(i).Interface()
	}
	fields["Lost"] = (*lost)(m.Lost)
	return fields
}

type instanceVector struct {
	Fields   map[string]string `json:"fields"`
	OK       bool              `json:"ok"`
	Instance record.Instance   `json:"instance"`
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func buildVectors() vectors {
	v := vectors{
		About:   "Conformance vectors of docs/wire-format.md; prefix locksteward:. Written by go test ./lock/record -update.",
		Version: record.Version,
	}
	for _, key := range append([]string{"lock:order:42", "{user:7}:lock", "order}42"}, hostile...) {
		k := keyVector{KeyB64: b64(key), Slot: record.Slot(key), TagB64: b64(record.Tag(key)), Names: map[string]string{
			"fence": b64(record.FenceKey(record.DefaultPrefix, key)),
		}}
		for _, kind := range kinds {
			k.Names[string(kind)] = b64(record.Companion(record.DefaultPrefix, kind, key))
		}
		v.Keys = append(v.Keys, k)
	}
	for _, value := range []string{
		"ls2:4ZGQ2K3LQFBO6XMVRQYWT5CDNE:XJ3T7SIGP2NBWQ5EYAHDKLM4RU", "ls2:a:b", "ls2:a:", "ls2::b", "ls2:a:b:c", "ls1:a:b", "ls2:a b:c", "1", "",
	} {
		id, ok := record.ParseValue([]byte(value))
		v.Values = append(v.Values, valueVector{value, ok, id})
	}
	for _, text := range []string{
		`{"fence":"1767225600000123","acquired":"1767225600000","lost":"OLDID I6 1767225500000001 1767225590000","renewed":"1767225620000",` +
			`"progress":"1767225619000","id":"4ZGQ2K3LQFBO6XMVRQYWT5CDNE","seq":3,"renewals":2,"renew_failures":1,"holds":2,"session":"S7",` +
			`"holding":["lock:order:43","a b"],"trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","v":2,"instance":"I7",` +
			`"app":"billing","host":"web-1","pid":4711,"class":"orders","purpose":"charge card","ttl":30000,"renew_every":10000,` +
			`"expect":5000,"max_hold":600000,"ends_with_heartbeat":1}`,
		`{"fence":"1767225600000123","id":"A","v":2}`,
		`{"fence":"1767225600000123","offered":"1767225600150","id":"A","v":2}`,
		`{"free":"1767225600000","v":2}`,
		`{"lost":"B - 0 0","id":"A","v":2}`,
		`{"lost":"B - 7 1767225600150 offered","id":"A","v":2}`,
		`{"id":"A","holding_b64":["YQ==","/w=="],"trace_b64":"AQ==","v":2,"app_b64":"Yf9i","host_b64":"Cg==","class_b64":"/w==","purpose_b64":"fw=="}`,
		`{"v":3,"id":"A","color":{"red":1}}`,
		`{"id":"A","v":2,"ttl":-5}`,
		`{"fence":7,"id":"A","v":2}`,
		`{"id":"A","v":2,"holding":"lock:order:43"}`,
		`{"id":"A"}`,
		`{"v":2}`,
		`[]`,
		``,
	} {
		m, err := record.Decode(text)
		v.Metadata = append(v.Metadata, metaVector{text, err == nil, err == nil && m.Encode() == text, metaFields(m)})
	}
	for _, fields := range []map[string]string{
		{"id": "I7", "app": "billing", "host": "web-1", "pid": "4711", "started": "1767225000000", "slot": "billing-0"},
		{"app": "billing"},
		{"id": "I7", "count:orders": "120 3 40 7 1 0", "count:_other": "1 0 0 0 0 0 9", "count:": "2 0 0 0 0 0"},
		{"id": "I7", "count:orders": "120 3"},
	} {
		i, err := record.DecodeInstance(fields)
		v.Instances = append(v.Instances, instanceVector{fields, err == nil, *i})
	}
	for _, text := range []string{
		"S7 I7 1767225600000123 1767225603000", `- I7 1767225600000123 1767225603000 150 NONCE7 ls2:A:B "id":"A","v":2}`, "- - 0 0", "S7 I7 x 0", "S7 I7 1", "",
	} {
		w, err := record.ParseWaiter(text)
		v.Waiters = append(v.Waiters, waiterVector{text, err == nil, w})
	}
	for _, message := range []string{"turn A 0", "turn A 12", "turn A 1 and more", "turn A -1", "turn A", "turn  0", "turn A x", "lost A", ""} {
		m, ok := parse(message, record.MessageTurn)
		v.Turns = append(v.Turns, turnVector{message, ok, m.ID, m.Before})
	}
	for _, message := range []string{
		"yours A 1767225600000123 NONCE7", "yours A 1767225600000123 NONCE7 and more", "yours A 0 NONCE7", "yours A -1 NONCE7",
		"yours A 1767225600000123", "yours A 1767225600000123 ", "yours  7 M", "yours A x M", "yours A", "turn A 0", "",
	} {
		m, ok := parse(message, record.MessageHand)
		v.Grants = append(v.Grants, grantVector{message, ok, grant{m.ID, m.Fence, m.Nonce}})
	}
	for _, message := range []string{"lost A", "lost A by request 7", "lost ", "lost", "turn A 0", ""} {
		m, ok := parse(message, record.MessageLost)
		v.Losses = append(v.Losses, lossVector{message, ok, m.ID})
	}
	return v
}

// parse reads a message of one kind.
func parse(text, kind string) (record.Message, bool) {
	m, ok := record.ParseMessage(text)
	if m.Kind != kind {
		return record.Message{}, false
	}
	return m, ok
}

// The file is frozen: a difference is a change of the wire format.
func TestVectors(t *testing.T) {
	t.Parallel()
	want, err := json.MarshalIndent(buildVectors(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(vectorFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var got, now vectors
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &now); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, now) {
		t.Errorf("the code no longer agrees with %s: the wire format has changed", vectorFile)
	}
	if len(got.Keys) < 30 || len(got.Metadata) < 10 {
		t.Errorf("%s has lost vectors", vectorFile)
	}
}
