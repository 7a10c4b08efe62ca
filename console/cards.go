package console

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/users"
)

// cardMembers is how many findings of a card are listed.
const cardMembers = 10

// findingCard is a finding, or all of one cause: of the same rule, class, target, severity and status.
type findingCard struct {
	findingRow // the first of them
	// Count is how many there are. Title, Members and ID are of a card of several.
	Count   int
	ID      string
	Title   string
	Members []findingRow
}

// FindingRow is the finding of a card of one.
func (c findingCard) FindingRow() findingRow { return c.findingRow }

// cardAction is the one thing that a card offers to do.
type cardAction struct{ Name, Path string }

// cause is what findings of one card have in common.
type cause struct {
	rule, class, target string
	severity            locksteward.Severity
	status              locksteward.Status
	inhibitedBy         string
	silenced            bool
}

func causeOf(row findingRow) cause {
	return cause{row.Rule, row.Class, row.Target, row.Severity, row.Status, row.InhibitedBy, row.Silence != nil}
}

// cardsOf puts findings of one cause on one card, in the order of the first of each.
func cardsOf(rows []findingRow) []findingCard {
	var out []findingCard
	at := map[cause]int{}
	for _, row := range rows {
		key := causeOf(row)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, findingCard{findingRow: row})
		}
		card := &out[i]
		if card.Count++; card.Count <= cardMembers {
			card.Members = append(card.Members, row)
		}
	}
	return out
}

// actions decides what cards offer to do.
type actions struct {
	view    view
	classes map[string]string // how locks of a class are released, by its name
	open    map[api.LockKey]string
}

// actionsFor reads what the actions of cards depend on.
func (s *Server) actionsFor(r *http.Request, v view) actions {
	out := actions{view: v, classes: map[string]string{}, open: map[api.LockKey]string{}}
	for _, c := range s.deps.Targets.Classes() {
		out.classes[c.Class] = c.Release
	}
	// Without the store cards offer to ask for a release, and the lock's page says what is the matter.
	if list, err := s.deps.Requests.List(r.Context(), RequestFilter{States: openStates, Limit: countMost}); err == nil {
		for _, row := range requestRows(list) {
			out.open[api.LockKey{Target: row.Evidence.Target, DB: row.Evidence.DB, Key: row.Evidence.Key}] = row.Address
		}
	}
	return out
}

// complete gives cards their titles and actions.
func (a actions) complete(cards []findingCard, titles map[string]string) []findingCard {
	for i := range cards {
		card := &cards[i]
		if card.Count == 1 {
			card.Action = a.of(card.Finding)
			continue
		}
		card.ID = "c-" + mark(card.Rule, card.Class, card.Target, card.Severity.String(), string(card.Status), card.InhibitedBy, strconv.FormatBool(card.Silence != nil))
		what := "finding"
		if card.Key != "" {
			what = "lock"
		}
		card.Title = plural.Count(card.Count, what)
		if card.Class != "" {
			card.Title += " in class " + inert(card.Class)
		}
		card.Title += ": " + lower(cmp.Or(titles[card.Rule], card.Rule))
		card.Action = cardAction{"Show all " + strconv.Itoa(card.Count), a.view.To("/findings", "rule", card.Rule, "class", card.Class,
			"target", card.Target, "severity", card.Severity.String(), "status", string(card.Status))}
	}
	return cards
}

// lower begins a text in lower case, unless its first word is an abbreviation.
func lower(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if next, _ := utf8.DecodeRuneInString(text[size:]); unicode.IsUpper(next) {
		return text
	}
	return string(unicode.ToLower(first)) + text[size:]
}

// ofDeadHolder are the rules whose findings a release of the lock ends.
var ofDeadHolder = map[string]bool{"ttl/none": true, "holder/dead": true, "holder/stranded": true, "renewal/zombie": true, "hold/too-long": true}

// of is what a finding asks for: a release where its holder seems dead, else a look at its holder, or at who waits. What is about no lock
// can be silenced.
func (a actions) of(f locksteward.Finding) cardAction {
	v := a.view
	page := v.To("/findings/" + f.Fingerprint())
	group, _, _ := strings.Cut(f.Rule, "/")
	switch {
	case f.Key != "" && a.open[api.LockKey{Target: f.Target, DB: f.DB, Key: f.Key}] != "":
		return cardAction{"Open its request", v.To(a.open[api.LockKey{Target: f.Target, DB: f.DB, Key: f.Key}])}
	case f.Key != "" && ofDeadHolder[f.Rule] && f.Status == locksteward.StatusFiring && a.classes[f.Class] != "off" && v.who.Can(users.VerbRequest):
		return cardAction{"Request release", v.LockAt(f.Target, f.DB, f.Key) + "#release"}
	case f.Rule == ruleHostLost && v.who.Can(users.VerbRequest):
		return cardAction{"Request release of its locks", page + "#host-title"}
	case group == "wait":
		return cardAction{"See who waits", v.To("/graph", "target", f.Target)}
	case f.Key != "":
		return cardAction{"Open holder", v.LockAt(f.Target, f.DB, f.Key) + "#holder"}
	case v.who.Can(users.VerbSilence):
		return cardAction{"Silence", page + "#accept"}
	default:
		return cardAction{"Details", page}
	}
}

// titles are what rules find, by their names, in the language of the page.
func (s *Server) titles(lang string) map[string]string {
	out := map[string]string{}
	for _, rule := range s.deps.Advisor.Rules(lang) {
		out[rule.Rule] = rule.Title
	}
	return out
}
