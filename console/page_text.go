package console

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/internal/plural"
)

var pageFuncs = template.FuncMap{
	"text":       catalogue.Text,
	"key":        showKey,
	"inert":      inert,
	"brief":      brief,
	"short":      shortKey,
	"span":       span,
	"when":       when,
	"millis":     func(ms int64) string { return span(time.Duration(ms) * time.Millisecond) },
	"percent":    percent,
	"waited":     waited,
	"watch":      watchWords,
	"holder":     holder,
	"digest":     digest,
	"join":       strings.Join,
	"plural":     plural.Count[int],
	"state":      stateWords,
	"tone":       stateClass,
	"expiry":     expiry,
	"bytes":      bytesWords,
	"action":     actionWords,
	"outcome":    api.OutcomeWords,
	"by":         byWhom,
	"subject":    subjectPath,
	"plural64":   plural.Count[int64],
	"stamp":      stamp,
	"args":       func(v view, x any) args { return args{v, x} },
	"progress":   progress,
	"firstSweep": firstSweep,
	"left":       left,
	"id":         newShortID,
	"companion":  companionWords,
	"anyOutcome": func(rows []requestRow) bool {
		return slices.ContainsFunc(rows, func(r requestRow) bool { return r.Said != "" })
	},
}

// args is what a part of a page gets.
type args struct {
	V view
	X any
}

// span is a duration for a person: two units at most.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// The script rewrites times of these classes: it goes on counting, and puts the viewer's zone into the tooltip.
const (
	timeAgo  = "ago"  // how long ago, or in how long
	timeAge  = "age"  // for how long by now
	timeLeft = "left" // how long is left
	timeAt   = "at"   // the time itself
)

// timeTag is a time with words for it, and the time in UTC behind them.
func timeTag(class string, t time.Time, words string, least bool) template.HTML {
	t = t.UTC()
	data := ""
	if least {
		data = ` data-least="1"`
	}
	// Digits and letters of a layout: nothing to be escaped.
	return template.HTML(`<time class="` + class + `" datetime="` + t.Format("2006-01-02T15:04:05.000Z07:00") + `" title="` + t.Format(time.DateTime) + ` UTC"` + data + `>` + words + `</time>`)
}

// when is a time as people think of it, with the time itself behind it.
func when(now, t time.Time) template.HTML {
	if t.IsZero() {
		return `<span class="dim">not known</span>`
	}
	text := "just now"
	switch d := now.Sub(t); {
	case d >= time.Second:
		text = span(d.Truncate(time.Second)) + " ago"
	case d <= -time.Second:
		text = "in " + span((-d).Truncate(time.Second))
	}
	return timeTag(timeAgo, t, text, false)
}

// left is how long it is until t.
func left(now, t time.Time) template.HTML {
	return timeTag(timeLeft, t, span(max(0, t.Sub(now)).Truncate(time.Second)), false)
}

// stamp is a time in UTC.
func stamp(t time.Time) template.HTML {
	return timeTag(timeAt, t, t.UTC().Format(time.DateTime)+" UTC", false)
}

// percent shows a share of a server's time.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(1000*share)/10, 'f', -1, 64) + " %"
}

// waited says for how long the budget made looking wait, and mostly why; "" if
// it never did.
func waited(b *api.Budget) string {
	total, reason := b.Waited()
	if reason == "" {
		return ""
	}
	because := map[string]string{
		"headroom": "others use the server", "used": "others use the server", "starting": "its use was not known yet", "unknown": "it does not report its use",
		"jumped": "its counters jump", "delayed": "it answered late", "memory": "it is nearly out of memory", "average": "ten minutes had their share",
	}[reason]
	return "waited " + span(total) + " in all, mostly because " + cmp.Or(because, "of "+reason)
}

// watchWords say how changes of a target are noticed between sweeps.
func watchWords(mode string) string {
	switch mode {
	case "tracking":
		return "the servers report each change (client tracking)"
	case "keyspace":
		return "the servers report some changes (keyspace notifications)"
	case "sweep":
		return "changes are found by sweeps alone"
	}
	return mode
}

// byWhom is the holder of an event in words; "" if nothing is known of it.
func byWhom(h api.Holder) string {
	if h == (api.Holder{}) {
		return ""
	}
	return holder(locksteward.Holder{App: h.App, Host: h.Host, PID: h.PID, Session: h.Session, Instance: h.Instance})
}

func holder(h locksteward.Holder) string {
	var parts []string
	if h.App != "" {
		parts = append(parts, h.App)
	}
	if h.Host != "" {
		parts = append(parts, "on "+h.Host)
	}
	if h.PID != 0 {
		parts = append(parts, "pid "+strconv.Itoa(h.PID))
	}
	if len(parts) == 0 {
		switch {
		case h.Instance != "":
			return "instance " + h.Instance
		case h.Session != "":
			return "session " + h.Session
		}
		return notKnown
	}
	return strings.Join(parts, " ")
}

// who is a holder or a waiter in words, or where nothing but an identifier is known, that.
type who struct{ Words, Kind, ID string }

func whoOf(h locksteward.Holder) who {
	words := holder(locksteward.Holder{App: h.App, Host: h.Host, PID: h.PID})
	switch {
	case words != notKnown:
		return who{Words: words}
	case h.Instance != "":
		return who{Kind: "instance", ID: h.Instance}
	case h.Session != "":
		return who{Kind: "session", ID: h.Session}
	}
	return who{Words: notKnown}
}

// digest is the beginning of a digest: enough to compare by eye.
func digest(text string) string {
	_, sum, ok := strings.Cut(text, ":")
	if !ok {
		sum = text
	}
	if len(sum) > 12 {
		sum = sum[:12] + "…"
	}
	return cmp.Or(inert(sum), "none")
}

// bytesWords is a size for a person.
func bytesWords(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	size, i := float64(n), 0
	for size >= 1024 && i < len(units)-1 {
		size, i = size/1024, i+1
	}
	return strconv.FormatFloat(math.Round(size*10)/10, 'f', -1, 64) + " " + units[i]
}

// stateWords are the states of requests in words.
func stateWords(s locksteward.RequestState) string {
	switch s {
	case locksteward.RequestPending:
		return "waits for a decision"
	case locksteward.RequestAlreadyGone:
		return "already gone"
	case locksteward.RequestUnknown:
		return "outcome unknown"
	default:
		return string(s)
	}
}

// stateClass is how a state of a request looks.
func stateClass(s locksteward.RequestState) string {
	switch s {
	case locksteward.RequestReleased:
		return "good"
	case locksteward.RequestPending, locksteward.RequestApproved, locksteward.RequestExecuting:
		return "warning"
	case locksteward.RequestFailed, locksteward.RequestUnknown:
		return "critical"
	default:
		return "quiet"
	}
}

// expiry is an expiry time in words.
func expiry(ms int64) string {
	switch ms {
	case locksteward.NoExpireAt:
		return "never"
	case 0:
		return "not known"
	default:
		return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000") + " UTC"
	}
}

// shortID is an identifier of a machine: people compare its ends and copy the whole.
type shortID struct{ Short, Whole string }

// maxID is how many bytes of an identifier are shown before it is cut in its middle.
const maxID = 14

func newShortID(text string) shortID {
	whole := inert(text)
	out := shortID{Short: whole, Whole: whole}
	if r := []rune(whole); len(r) > maxID {
		out.Short = string(r[:6]) + "…" + string(r[len(r)-4:])
	}
	return out
}

// companions says what the keys are that Locksteward and its lock library keep beside locks, by what their names begin with.
var companions = map[string]string{
	"locksteward:hold:":     "facts about the hold (holder, times, renewals), written by the lock library beside the lock; it expires by itself",
	"locksteward:queue:":    "the queue of those who wait for the lock; it expires by itself",
	"locksteward:waiter:":   "who waits for the lock, for the hand-over at its release; it expires by itself",
	"locksteward:undo:":     "a copy of the released lock, kept so that the release can be undone; it expires by itself",
	"locksteward:exec:":     "the record that a release was carried out, so that it is not carried out twice; it expires by itself",
	"locksteward:fence:":    "the counter of fencing tokens of some locks; it must stay, or fences go back",
	"locksteward:instance:": "the heartbeat of a process that uses the lock library; it expires by itself",
}

// companionWords explains a key that Locksteward or its lock library made; "" for any other.
func companionWords(key string) string {
	if parts := strings.SplitAfterN(key, ":", 3); len(parts) == 3 {
		return companions[parts[0]+parts[1]]
	}
	return ""
}

// maxShown bounds a key on a page; 64 MiB of name must not become a page.
const maxShown = 200

func showKey(key string) string {
	text := locksteward.DisplayKey(key[:min(len(key), maxShown)])
	if len(key) <= maxShown && len(text) <= maxShown {
		return text
	}
	// What stands for a byte may be cut in two: the text says that something is missing.
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "") + fmt.Sprintf("… (%d bytes)", len(key))
}

// shortKey is a key where it has been shown in full already.
func shortKey(key string) string { return middle(showKey(key), 60) }

// maxBrief bounds a text in a list, in bytes.
const maxBrief = 160

// brief is a text in a list: its page has all of it.
func brief(text string) string {
	if text = inert(text); len(text) > maxBrief {
		text = strings.ToValidUTF8(text[:maxBrief], "") + "…"
	}
	return text
}

// inert takes from a text what could move or turn other text around it: control
// and direction characters. Its markup is the template's business.
func inert(text string) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return '�'
		}
		return r
	}, text)
	if len(text) > 4*maxShown {
		text = strings.ToValidUTF8(text[:4*maxShown], "") + "…"
	}
	return text
}

// maxTyped is as long as a reason may be, in bytes; what is longer was refused.
const maxTyped = 2000

// inertTyped is what somebody typed, to be typed on: line breaks stay.
func inertTyped(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxTyped {
		text = strings.ToValidUTF8(text[:maxTyped], "")
	}
	return text
}

// keyParameter is how an address or a form names a key: as it is, encoded if it is
// no clean text, or by its digest if it is long: an address has to be short, and so
// has a page of fifty of them.
func keyParameter(key string) (name, value string) {
	if len(key) > LongKey {
		return "key_sha256", KeySum(key)
	}
	if !utf8.ValidString(key) || key != inert(key) {
		return "key_b64", base64.StdEncoding.EncodeToString([]byte(key))
	}
	return "key", key
}
