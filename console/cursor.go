package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// A cursor is the place behind the last item of a page. It names the item and
// what it is sorted by, not a number of items, so that items that come and go
// between two pages neither hide others nor show them twice. To clients it is
// opaque: nothing but this package reads it.

// maxCursorKey is how much of a key goes into a cursor, which must fit into a URL.
const maxCursorKey = 2048

// lockCursor is a cursor in the list of locks.
type lockCursor struct {
	Sort   string `json:"s"`
	Value  int64  `json:"v,omitempty"`
	Target string `json:"t"`
	DB     int    `json:"d,omitempty"`
	Key    []byte `json:"k"`
}

// requestCursor is one in the list of requests.
type requestCursor struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// findingCursor is one in the list of findings: what they are sorted by.
type findingCursor struct {
	Severity int       `json:"s"`
	Status   string    `json:"st"`
	Since    time.Time `json:"at"`
	Target   string    `json:"t"`
	DB       int       `json:"d,omitempty"`
	Key      []byte    `json:"k,omitempty"`
	Class    string    `json:"c,omitempty"`
	Rule     string    `json:"r"`
	Subject  []byte    `json:"su,omitempty"`
}

func encodeCursor(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // texts, numbers and times of this century
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// cursor reads the parameter cursor; false if there is none, or if it is not one that
// this list gave.
func (q *query) cursor(into any) bool {
	text := q.text("cursor")
	if text == "" {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.DisallowUnknownFields()
		err = dec.Decode(into)
	}
	if err != nil {
		q.bad("cursor: not a cursor of this list: start again without it")
		return false
	}
	return true
}

// lockCursorOf is the cursor behind a place; "" for none.
func lockCursorOf(sort string, p *LockPosition) string {
	if p == nil {
		return ""
	}
	key := p.Key
	if len(key) > maxCursorKey {
		// What begins alike for so long is taken for one lock.
		key = key[:maxCursorKey] + "\xff\xff\xff\xff\xff\xff\xff\xff"
	}
	return encodeCursor(lockCursor{Sort: sort, Value: p.Value, Target: p.Target, DB: p.DB, Key: []byte(key)})
}

// lockPosition reads the cursor of a list of locks that is sorted so.
func (q *query) lockPosition(sort string) *LockPosition {
	var c lockCursor
	if !q.cursor(&c) {
		return nil
	}
	if c.Sort != sort {
		q.bad("cursor: belongs to a list with sort=%s: start again without it", c.Sort)
		return nil
	}
	return &LockPosition{Value: c.Value, Target: c.Target, DB: c.DB, Key: string(c.Key)}
}

func findingCursorOf(f locksteward.Finding) findingCursor {
	return findingCursor{
		Severity: int(f.Severity), Status: string(f.Status), Since: f.Since, Target: f.Target, DB: f.DB, Key: []byte(f.Key),
		Class: f.Class, Rule: f.Rule, Subject: []byte(f.Subject),
	}
}

// finding is one that sorts as the cursor does.
func (c findingCursor) finding() locksteward.Finding {
	return locksteward.Finding{
		Severity: locksteward.Severity(c.Severity), Status: locksteward.Status(c.Status), Since: c.Since, Target: c.Target, DB: c.DB,
		Key: string(c.Key), Class: c.Class, Rule: c.Rule, Subject: string(c.Subject),
	}
}

// linkNext tells where the next page is, as RFC 8288 has it.
func linkNext(w http.ResponseWriter, r *http.Request, next string) {
	if next == "" {
		return
	}
	q := r.URL.Query()
	q.Set("cursor", next)
	w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+q.Encode()+`>; rel="next"`)
}
