package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// hushed is what a world has of silences.
type hushed struct {
	list   []api.Silence
	inputs []SilenceInput
}

func aSilence(id string) api.Silence {
	return api.Silence{
		ID: id, Matchers: []string{"team=checkout", "severity=~warning|info"}, Reason: "the queue is rebuilt, INC-11", State: api.SilenceActive, Findings: 1,
		CreatedBy: "bo", CreatedAt: at, StartsAt: at, EndsAt: at.Add(2 * time.Hour),
	}
}

// Silences has one that holds and one that was ended.
func (w *world) Silences(_ context.Context, all bool) ([]api.Silence, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	over := aSilence("sil_0")
	over.State, over.Findings, over.EndedBy, over.EndedAt = api.SilenceOver, 0, "ann", at.Add(time.Hour)
	out := append(slices.Clone(w.hushed.list), aSilence("sil_1"))
	if all {
		out = append(out, over)
	}
	return out, w.fail
}

func (w *world) AddSilence(_ context.Context, by string, in SilenceInput) (api.Silence, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return api.Silence{}, w.fail
	}
	if slices.Contains(in.Matchers, "tema=x") {
		return api.Silence{}, fmt.Errorf("%w: matchers: \"tema\" is no label, did you mean team?", locksteward.ErrInvalid)
	}
	w.hushed.inputs = append(w.hushed.inputs, in)
	one := aSilence("sil_2")
	one.CreatedBy, one.Reason, one.Matchers, one.Fingerprint = by, in.Reason, in.Matchers, in.Fingerprint
	if in.Fingerprint != "" {
		one.Matchers = []string{"fingerprint=" + in.Fingerprint}
	}
	w.hushed.list = append([]api.Silence{one}, w.hushed.list...)
	return one, nil
}

func (w *world) EndSilence(_ context.Context, by, id string) (api.Silence, error) {
	switch id {
	case "sil_1", "r1":
		one := aSilence("sil_1")
		one.State, one.Findings, one.EndedBy, one.EndedAt = api.SilenceOver, 0, by, at
		return one, w.fail
	case "sil_0":
		return api.Silence{}, fmt.Errorf("silence %q is over already: %w", id, locksteward.ErrConflict)
	}
	return api.Silence{}, fmt.Errorf("silence %q: %w", id, locksteward.ErrNotFound)
}

func (w *world) SilencedBy(f locksteward.Finding) (api.Silence, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.hushed.list {
		if one.Fingerprint == f.Fingerprint() || slices.Contains(one.Matchers, "class="+f.Class) {
			return one, true
		}
	}
	return api.Silence{}, false
}

func TestSilencesOfTheAPI(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer", "approver", "admin")
	if l := get[api.SilenceList](b, "viewer", "/api/v1/silences"); len(l.Silences) != 1 || l.Silences[0].ID != "sil_1" {
		t.Errorf("%+v", l)
	}
	if l := get[api.SilenceList](b, "viewer", "/api/v1/silences?all=true"); len(l.Silences) != 2 {
		t.Errorf("%+v", l)
	}
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for body, want := range map[string]string{
		`{"matchers":["team=x"],"for_ms":7200000,"reason":" why "}`:                                "",
		`{"fingerprint":"f1","until":"` + soon.Format(time.RFC3339) + `","reason":"why"}`:          "",
		`{"for_ms":1,"reason":"why"}`:                                                              "write one of matchers",
		`{"matchers":["team=x"],"fingerprint":"f1","for_ms":1,"reason":"why"}`:                     "write one of matchers",
		`{"matchers":["team=x"],"reason":"why"}`:                                                   "write one of until (a time) and for_ms",
		`{"matchers":["team=x"],"for_ms":1,"until":"2026-03-01T12:00:00Z","reason":"why"}`:         "write one of until (a time) and for_ms",
		`{"matchers":["team=x"],"until":"2026-03-01T12:00:00Z","reason":"why"}`:                    "until: must be in the future",
		`{"matchers":["team=x"],"until":"9999-03-01T12:00:00Z","reason":"why"}`:                    "at most 90 days away",
		`{"matchers":["team=x"],"for_ms":7776000001,"reason":"why"}`:                               "for_ms: must be between 1 and 7776000000",
		`{"matchers":["team=x"],"for_ms":-1,"reason":"why"}`:                                       "for_ms: must be between",
		`{"matchers":["team=x"],"for_ms":1}`:                                                       "reason: is missing",
		`{"matchers":["team=x"],"for_ms":1,"reason":"  "}`:                                         "reason: is missing",
		`{"matchers":["team=x"],"for_ms":1,"reason":"` + strings.Repeat("x", 1001) + `"}`:          "reason: at most 1000 bytes",
		`{"matchers":["team=x"` + strings.Repeat(`,"team=x"`, 20) + `],"for_ms":1,"reason":"why"}`: "matchers: at most 20, got 21",
		`{"matchers":["tema=x"],"for_ms":1,"reason":"why"}`:                                        "did you mean team?",
		`{"matchers":"team=x","for_ms":1,"reason":"why"}`:                                          "matchers: must be a JSON array",
	} {
		a := b.do("approver", http.MethodPost, "/api/v1/silences", body)
		if want == "" {
			if a.status != http.StatusCreated {
				t.Errorf("%s: status %d: %s", body, a.status, a.body)
			}
		} else if p := a.problem(t); p.Status != http.StatusBadRequest || !strings.Contains(p.Detail, want) {
			t.Errorf("%.80s: %+v", body, p)
		}
	}
	if len(b.world.hushed.inputs) != 2 {
		t.Fatalf("%+v", b.world.hushed.inputs)
	}
	for _, in := range b.world.hushed.inputs {
		switch {
		case in.Reason != "why":
			t.Errorf("%+v", in)
		case in.Fingerprint == "f1" && in.Until.Equal(soon), len(in.Matchers) == 1 && time.Until(in.Until) > 119*time.Minute && time.Until(in.Until) <= 2*time.Hour:
		default:
			t.Errorf("%+v", in)
		}
	}
	for path, want := range map[string]int{"sil_1": 200, "sil_0": 409, "none": 404, "sil_1/expire?x=1": 400} {
		path, query, _ := strings.Cut(path, "/expire")
		if a := b.do("admin", http.MethodPost, "/api/v1/silences/"+path+"/expire"+query, ""); a.status != want {
			t.Errorf("%s: status %d: %s", path, a.status, a.body)
		}
	}
	b.world.fail = errors.New("broken")
	if a := b.do("viewer", http.MethodGet, "/api/v1/silences", ""); a.status != http.StatusInternalServerError {
		t.Errorf("status %d", a.status)
	}
}

// A list of findings says what silences each.
func TestFindingsSayWhoSilencedThem(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer")
	f := get[api.FindingList](b, "viewer", "/api/v1/findings?severity=critical").Findings[0]
	if f.SilencedBy != "" || !f.AcceptedUntil.IsZero() {
		t.Fatalf("%+v", f)
	}
	label := aSilence("sil_3")
	label.Matchers = []string{"class=" + f.Class}
	b.world.hushed.list = []api.Silence{label}
	if f = get[api.FindingList](b, "viewer", "/api/v1/findings?severity=critical").Findings[0]; f.SilencedBy != "sil_3" || !f.SilencedUntil.Equal(label.EndsAt) || !f.AcceptedUntil.IsZero() {
		t.Errorf("%+v", f)
	}
	accept := aSilence("sil_4")
	accept.Fingerprint = f.Fingerprint
	b.world.hushed.list = []api.Silence{accept}
	if f = get[api.FindingList](b, "viewer", "/api/v1/findings?severity=critical").Findings[0]; f.SilencedBy != "sil_4" || !f.AcceptedUntil.Equal(label.EndsAt) {
		t.Errorf("%+v", f)
	}
	for path, wants := range map[string][]string{
		"/":                          {"1 finding is silenced or accepted", "<b>0</b> <span>findings to look at"},
		"/findings":                  {`<span class="tag">accepted</span> muted until 2026-03-01 14:00:00 UTC by bo: <q>the queue is rebuilt, INC-11</q>`},
		"/findings/" + f.Fingerprint: {`<span class="tag">accepted</span>`},
	} {
		page := untimed(b.do("viewer", http.MethodGet, path, "").body)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s: %q is missing in %s", path, want, page)
			}
		}
	}
}

// The forms of the pages, without script.
func TestSilencesOfThePages(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer", "approver")
	page := b.do("approver", http.MethodGet, "/silences", "")
	for _, want := range []string{"team=checkout", "severity=~warning|info", "the queue is rebuilt, INC-11", `action="/silences/sil_1/expire"`, `action="/silences"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if viewer := b.do("viewer", http.MethodGet, "/silences?all=true", "").body; strings.Contains(viewer, "<form class=\"ask\"") || !strings.Contains(viewer, "ended by ann") {
		t.Error("a viewer is shown the form, or not what is over")
	}
	seen := page.hidden(t, "mark")
	for name, c := range map[string]struct {
		pairs  []string
		status int
		want   string
	}{
		"nothing": {[]string{"matchers", " \n ", "for", "2h", "reason", "x", "mark", seen}, 400, "write at least one condition"},
		"typo":    {[]string{"matchers", "tema=x", "for", "2h", "reason", "the reason", "mark", seen}, 400, "the reason</textarea>"},
		"no end":  {[]string{"matchers", "team=x", "reason", "x", "mark", seen}, 400, "every silence has an end"},
		"no unit": {[]string{"matchers", "team=x", "for", "2", "reason", "x", "mark", seen}, 400, "write a duration"},
		"no why":  {[]string{"matchers", "team=x", "for", "2h", "mark", seen}, 400, "reason: is missing"},
		"old":     {[]string{"matchers", "team=x", "for", "2h", "reason", "x", "mark", "old"}, 409, "already sent"},
		"field":   {[]string{"matchers", "team=x", "for", "2h", "reason", "x", "mark", seen, "force", "yes"}, 400, "force: unknown field"},
	} {
		if a := b.send("approver", "/silences", c.pairs...); a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: status %d, want %d with %q", name, a.status, c.status, c.want)
		}
	}
	if len(b.world.hushed.inputs) != 0 {
		t.Fatalf("%+v", b.world.hushed.inputs)
	}
	a := b.send("approver", "/silences", "matchers", "team=x\r\n\r\n key=lock: 1\r\n", "for", "2h", "reason", "why", "mark", seen)
	if a.status != http.StatusSeeOther || a.head.Get("Location") != "/silences" || !slices.Equal(b.world.hushed.inputs[0].Matchers, []string{"team=x", "key=lock: 1"}) {
		t.Errorf("status %d: %+v", a.status, b.world.hushed.inputs)
	}
	if a := b.send("approver", "/silences", "matchers", "team=x", "for", "2h", "reason", "why", "mark", seen); a.status != http.StatusConflict {
		t.Errorf("sent twice: status %d", a.status)
	}
	for id, want := range map[string]int{"sil_1": http.StatusSeeOther, "sil_0": http.StatusConflict, "none": http.StatusNotFound} {
		if a := b.send("approver", "/silences/"+id+"/expire"); a.status != want {
			t.Errorf("%s: status %d", id, a.status)
		}
	}

	f := b.world.findings[0]
	path := "/findings/" + url.PathEscape(f.Fingerprint())
	page = b.do("approver", http.MethodGet, path, "")
	if viewer := b.do("viewer", http.MethodGet, path, "").body; strings.Contains(viewer, "/accept") || !strings.Contains(page.body, path+"/accept") {
		t.Error("who may accept is not shown the form, or who may not is")
	}
	seen = page.hidden(t, "mark")
	if a := b.send("approver", path+"/accept", "for", "x", "reason", "known bug", "mark", seen); a.status != http.StatusBadRequest || !strings.Contains(a.body, "known bug</textarea>") {
		t.Errorf("status %d", a.status)
	}
	if a := b.send("approver", path+"/accept", "for", "24h", "reason", "known bug", "mark", seen); a.status != http.StatusSeeOther || a.head.Get("Location") != path {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if in := b.world.hushed.inputs[1]; in.Fingerprint != f.Fingerprint() || in.Reason != "known bug" || in.Matchers != nil {
		t.Errorf("%+v", in)
	}
	if page := b.do("approver", http.MethodGet, path, "").body; !strings.Contains(page, "End this acceptance") || strings.Contains(page, path+"/accept") {
		t.Error("the page does not offer to end what was accepted")
	}
}
