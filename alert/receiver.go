package alert

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Receiver is one place that is notified. A key that its kind does not take is a problem; the
// tag `kinds` lists the kinds that take a key, and a key without it is for all.
type Receiver struct {
	// Name is the label of its metrics and log lines. For all kinds.
	Name string `yaml:"name"`
	// Kind is webhook, alertmanager, pagerduty, email, slack, dingtalk, feishu or wecom.
	Kind string `yaml:"kind"`
	// Lang is the language of all texts: "en" (default) or "zh". For all kinds.
	Lang string `yaml:"lang"`
	// Match are matchers of labels, such as team=checkout or severity=~critical: the receiver
	// is notified of findings that match all. Break-glass releases always notify. For all
	// kinds.
	Match []string `yaml:"match"`
	// KeyNames is how names of locks are shown: "full" (default), "template" (the pattern of
	// the class) or "hash". For all kinds.
	KeyNames string `yaml:"key_names"`
	// Grouping replaces those parts of the grouping that it names. For all kinds.
	Grouping *Regrouping `yaml:"grouping"`
	// MaxFindings bounds the findings that a notification lists. 0: as many as suit the kind.
	// For all kinds.
	MaxFindings int `yaml:"max_findings"`
	// Template replaces the built-in texts. For the kinds that people read.
	Template *Template `yaml:"template" kinds:"pagerduty email slack dingtalk feishu wecom"`

	Endpoint `yaml:",inline"`
	// URLs replace the URL with those of several instances: each gets everything, and a
	// notification is delivered when one of them accepted it. For alertmanager.
	URLs []locksteward.Secret `yaml:"urls" kinds:"alertmanager"`
	// Username and PasswordFile log in with a password. Password is in place of the file the
	// password itself, from the environment. For alertmanager and email.
	Username     string             `yaml:"username" kinds:"alertmanager email"`
	PasswordFile string             `yaml:"password_file" kinds:"alertmanager email"`
	Password     locksteward.Secret `yaml:"password" from:"env" kinds:"alertmanager email"`
	// TokenFile logs in with a bearer token, or Token does, from the environment. For
	// alertmanager.
	TokenFile string             `yaml:"token_file" kinds:"alertmanager"`
	Token     locksteward.Secret `yaml:"token" from:"env" kinds:"alertmanager"`
	// ResolveAfter is when an alert ends that is not resent, Resend how often firing alerts
	// are resent. For alertmanager.
	ResolveAfter time.Duration `yaml:"resolve_after" kinds:"alertmanager"`
	Resend       time.Duration `yaml:"resend" kinds:"alertmanager"`
	// RoutingKeyFile holds the integration key of the service, or RoutingKey does, from the
	// environment. One of them is required. For pagerduty.
	RoutingKeyFile string             `yaml:"routing_key_file" kinds:"pagerduty"`
	RoutingKey     locksteward.Secret `yaml:"routing_key" from:"env" kinds:"pagerduty"`
	// Server is host or host:port; the port is 587. On port 465 TLS comes first, as that port
	// has it, else STARTTLS. For email.
	Server string `yaml:"server" kinds:"email"`
	// StartTLS is "required" (default) or "never". For email.
	StartTLS string `yaml:"starttls" kinds:"email"`
	// From and To are addresses, with or without a name. For email.
	From string   `yaml:"from" kinds:"email"`
	To   []string `yaml:"to" kinds:"email"`
	// Mention are those who are mentioned when somebody is needed. For slack: here, channel,
	// everyone, or ids of users (U…, W…) and of user groups (S…); for dingtalk: telephone
	// numbers, or all; for feishu: ids of users (open_id or user_id), or all; for wecom: ids of
	// members.
	Mention []string `yaml:"mention" kinds:"slack dingtalk feishu wecom"`

	// templateFailed is called when the template failed.
	templateFailed func(error)
}

// How names of locks are shown.
const (
	KeyNamesFull     = "full"
	KeyNamesTemplate = "template"
	KeyNamesHash     = "hash"
)

func (r Receiver) withDefaults() Receiver {
	r.Lang = cmp.Or(r.Lang, "en")
	r.KeyNames = cmp.Or(r.KeyNames, KeyNamesFull)
	r.Endpoint = r.Endpoint.withDefaults()
	if k := kinds[r.Kind]; k.fill != nil {
		k.fill(&r)
	}
	return r
}

// Takes reports whether the kind of the receiver takes a key of the configuration.
func (r Receiver) Takes(key string) bool {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Receiver]()) {
		if keyOf(f) == key {
			return r.takes(f)
		}
	}
	return false
}

func (r Receiver) takes(f reflect.StructField) bool {
	list, some := f.Tag.Lookup("kinds")
	return !some || slices.Contains(strings.Fields(list), r.Kind)
}

// keyOf is the key of a field in the configuration.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// strangeKeys reports keys that the receiver's kind does not take.
func (r Receiver) strangeKeys() []error {
	var errs []error
	v := reflect.ValueOf(r)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if r.takes(f) {
			continue
		}
		got := v.FieldByIndex(f.Index)
		if got.IsZero() || got.Kind() == reflect.Slice && got.Len() == 0 {
			continue
		}
		errs = append(errs, fmt.Errorf("%s: is a key of kind %s, and not of %s: leave it out, or write another kind", keyOf(f), either(strings.Fields(f.Tag.Get("kinds"))), r.Kind))
	}
	return errs
}

// either lists words: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// problems reports what is wrong with a receiver that has its defaults beside its name, each
// problem with its key. g is the grouping that it may replace. It reads no file.
func (r Receiver) problems(g Grouping) []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Lang != "en" && r.Lang != "zh" {
		bad("lang: must be en or zh, got %q", r.Lang)
	}
	if !slices.Contains([]string{KeyNamesFull, KeyNamesTemplate, KeyNamesHash}, r.KeyNames) {
		bad("key_names: must be %s, %s or %s, got %q", KeyNamesFull, KeyNamesTemplate, KeyNamesHash, r.KeyNames)
	}
	for n, text := range r.Match {
		if _, err := ParseMatcher(text); err != nil {
			bad("match[%d]: %w", n, err)
		}
	}
	if r.Grouping != nil {
		for _, err := range g.but(r.Grouping).problems() {
			bad("grouping.%w", err)
		}
	}
	if r.MaxFindings < 0 || r.MaxFindings > 1000 {
		bad("max_findings: must be 1 to 1000, or 0 for what suits the kind, got %d", r.MaxFindings)
	}
	return append(errs, r.kindProblems()...)
}

// kindProblems are those problems that depend on the kind. Files are opened of a receiver
// without any.
func (r Receiver) kindProblems() []error {
	k, known := kinds[r.Kind]
	switch {
	case r.Kind == "":
		return []error{fmt.Errorf("kind: is missing: write %s", either(kindNames))}
	case !known:
		return []error{fmt.Errorf("kind: must be %s, got %q", either(kindNames), r.Kind)}
	}
	errs := append(r.strangeKeys(), r.Template.problems()...)
	if r.Takes("url") && len(r.URLs) == 0 {
		errs = append(errs, r.urlProblems()...)
	}
	errs = append(errs, r.limitProblems()...)
	errs = append(errs, r.secretProblems()...)
	errs = append(errs, given(r.Password, "password", r.PasswordFile)...)
	errs = append(errs, given(r.Token, "token", r.TokenFile)...)
	errs = append(errs, given(r.RoutingKey, "routing_key", r.RoutingKeyFile)...)
	for i, m := range r.Mention {
		if k.mentionable != nil && !k.mentionable(m) {
			errs = append(errs, fmt.Errorf("mention[%d]: must be %s, got %q", i, k.mentions, m))
		}
	}
	if k.problems != nil {
		errs = append(errs, k.problems(r)...)
	}
	return errs
}

// opened opens the transport of a valid receiver that has its defaults. Each problem begins
// with its key.
func (r Receiver) opened() (transport, error) {
	t, err := openReloading(func(fs *files) (transport, error) { return kinds[r.Kind].open(r, fs) })
	if err != nil {
		return nil, err
	}
	return asResender(t), nil
}
