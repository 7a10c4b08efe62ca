package rules

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/formats"
)

var update = flag.Bool("update", false, "rewrite the expected verdicts and the generated parts of docs/rules")

// fixture is input.yaml: facts with all times as "ago", seen from now.
type fixture struct {
	keys  []string      `yaml:"-"` // names of locks in it
	Now   time.Time     `yaml:"now"`
	Class class.Class   `yaml:"class"`
	Lock  *fixtureLock  `yaml:"lock"`
	Locks []fixtureLock `yaml:"locks"`
	Loss  *fixtureLoss  `yaml:"loss"`

	Beyond fixtureBeyond `yaml:",inline"`
	Waits  fixtureWaits  `yaml:",inline"`
}

type fixtureLock struct {
	Key        string         `yaml:"key"`
	Library    string         `yaml:"library"`
	Identity   string         `yaml:"identity"`
	Confidence string         `yaml:"confidence"`
	Configured bool           `yaml:"configured"`
	TTL        *time.Duration `yaml:"ttl"` // left out: none
	NoExpireAt bool           `yaml:"server_before_7"`
	Idle       time.Duration  `yaml:"idle"`
	Shared     bool           `yaml:"shared_token"`
	TokenKind  string         `yaml:"token_kind"`
	Waiters    int            `yaml:"waiters"`
	RenewEvery time.Duration  `yaml:"library_renews"`
	Written    *time.Duration `yaml:"value_says"` // when it was taken
	Asked      bool           `yaml:"asked"`
	Holder     fixtureHolder  `yaml:"holder"`
	Claim      *fixtureClaim  `yaml:"claim"`
	Beat       *time.Duration `yaml:"heartbeat"`
	History    fixtureHistory `yaml:"history"`

	Type     string          `yaml:"type"` // left out: string
	Lifetime string          `yaml:"lifetime"`
	Session  *fixtureSession `yaml:"session"`
	Absence  *fixtureAbsence `yaml:"absence"`
}

type fixtureSession struct {
	ID         string         `yaml:"id"`
	User       string         `yaml:"user"`
	Addr       string         `yaml:"addr"`
	Since      *time.Duration `yaml:"since"`
	State      string         `yaml:"state"`
	StateSince *time.Duration `yaml:"state_since"`
	Locks      []string       `yaml:"locks"`
}

type fixtureAbsence struct {
	From  string         `yaml:"from"`
	Since *time.Duration `yaml:"since"`
	Looks int            `yaml:"looks"`
}

type fixtureHolder struct {
	App      string `yaml:"app"`
	Host     string `yaml:"host"`
	PID      int    `yaml:"pid"`
	Session  string `yaml:"session"`
	Instance string `yaml:"instance"`
}

type fixtureHistory struct {
	FirstSeen   *time.Duration `yaml:"first_seen"`
	Looks       int            `yaml:"looks"`
	Renewals    int            `yaml:"renewals"`
	LastRenewal *time.Duration `yaml:"last_renewal"`
	RenewEvery  time.Duration  `yaml:"renew_every"`
	HadTTL      bool           `yaml:"had_ttl"`
}

type fixtureClaim struct {
	ID            string         `yaml:"id"`
	Purpose       string         `yaml:"purpose"`
	Acquired      *time.Duration `yaml:"acquired"`
	Renewed       *time.Duration `yaml:"renewed"`
	Progress      *time.Duration `yaml:"progress"`
	TTL           time.Duration  `yaml:"ttl"`
	RenewEvery    time.Duration  `yaml:"renew_every"`
	Expect        time.Duration  `yaml:"expect"`
	MaxHold       time.Duration  `yaml:"max_hold"`
	Renewals      int64          `yaml:"renewals"`
	RenewFailures int64          `yaml:"renew_failures"`
	Fence         int64          `yaml:"fence"`
}

type fixtureLoss struct {
	Key      string         `yaml:"key"`
	How      string         `yaml:"how"`
	Deadline *time.Duration `yaml:"deadline"`
	Holder   fixtureHolder  `yaml:"holder"`
	Claim    fixtureClaim   `yaml:"claim"`
	Instance bool           `yaml:"instance"`
	Beat     *time.Duration `yaml:"heartbeat"`
}

// want is want.yaml: the verdict after the engine filled it in.
type want struct {
	Result          Result   `yaml:"result"`
	Reason          string   `yaml:"reason"`
	Severity        string   `yaml:"severity,omitempty"`
	Library         string   `yaml:"library,omitempty"`
	ZH              string   `yaml:"zh,omitempty"`
	Evidence        []string `yaml:"evidence,omitempty"`
	CounterEvidence []string `yaml:"counter_evidence,omitempty"`
	EvidenceZH      []string `yaml:"evidence_zh,omitempty"`
	CounterZH       []string `yaml:"counter_evidence_zh,omitempty"`
	Cause           string   `yaml:"cause,omitempty"`  // where it is not the rule's usual one
	Remedy          string   `yaml:"remedy,omitempty"` // likewise
}

// TestFixtures runs every rule over its folder. Each rule has one, and each
// folder shows the rule firing, clear, and (where it can be) not applicable.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, r := range All() {
		d := r.Doc()
		dir := filepath.Join("testdata", strings.ReplaceAll(d.Name, "/", "-"))
		files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) < 3 {
			t.Errorf("%s: %d fixtures in %s, want at least 3", d.Name, len(files), dir)
		}
		fired := false
		for _, path := range files {
			got := runFixture(t, r, path)
			fired = fired || got.Result == Fires
			base := filepath.Base(path)
			if bad := strings.HasPrefix(base, "bad-"); bad != (got.Result == Fires) {
				t.Errorf("%s: result %s; a fixture is called bad-* if and only if the rule fires", path, got.Result)
			}
		}
		if !fired {
			t.Errorf("%s: no fixture makes it fire", d.Name)
		}
	}
}

func runFixture(t *testing.T, r Rule, path string) want {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) == 0 || len(bytes.TrimSpace(archive.Comment)) == 0 {
		t.Fatalf("%s: wants a comment that says what it shows, and input.yaml", path)
	}
	var in fixture
	decodeStrict(t, path, archive.Files[0].Data, &in)
	in.keys = keysIn(t, archive.Files[0].Data)
	got := judgeFixture(t, r, in)

	if *update {
		var b bytes.Buffer
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := enc.Encode(got); err != nil {
			t.Fatal(err)
		}
		archive.Files = append(archive.Files[:1], txtar.File{Name: "want.yaml", Data: b.Bytes()})
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if len(archive.Files) != 2 {
		t.Fatalf("%s: no want.yaml; run go test ./rules -run TestFixtures -update", path)
	}
	var expected want
	decodeStrict(t, path, archive.Files[1].Data, &expected)
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("%s:\n got %+v\nwant %+v", path, got, expected)
	}
	return got
}

func judgeFixture(t *testing.T, r Rule, fx fixture) want {
	t.Helper()
	d := r.Doc()
	in := Input{Now: fx.Now, Class: fx.Class, explain: true}
	in.Class.Name = orDefault(in.Class.Name)
	library := ""
	switch d.Scope {
	case ScopeLock:
		l := fx.Lock.lock(fx.Now)
		in.Lock, in.LibraryFacts, library = &l, formats.Facts(l.Library), l.Library
	case ScopeLoss:
		s := fx.Loss.loss(fx.Now)
		in.Loss, library = &s, lossLibrary
	case ScopeWaiters:
		library = lossLibrary
		if fx.Lock != nil {
			l := fx.Lock.lock(fx.Now)
			in.Lock = &l
		}
	case ScopeCycle:
		library = lossLibrary
	case ScopeClass:
		in.Group = &Group{}
		for _, fl := range fx.Locks {
			l := fl.lock(fx.Now)
			in.Group.add(&l)
		}
	}
	fx.Beyond.into(&in)
	fx.Waits.into(&in)
	v := r.Evaluate(in)
	in.explain = false
	if quiet := r.Evaluate(in); quiet.Result != v.Result {
		t.Errorf("%s: %s when explaining, %s when not", d.Name, v.Result, quiet.Result)
	}
	got := want{Result: v.Result, Reason: v.Reason}
	if v.Finding == nil {
		return got
	}
	set, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newPolicy(nil, set)
	f := *v.Finding
	p.complete(&f, d.Name, p.setting(d.Name, in.Class.Name), in.Class)
	got.Severity = f.Severity.String()
	got.Library = f.Library
	if got.Library == "" {
		got.Library = library
	}
	got.ZH, got.Evidence, got.CounterEvidence = catalogue.Text("zh", f.Summary), rendered("en", f.Evidence), rendered("en", f.CounterEvidence)
	got.EvidenceZH, got.CounterZH = rendered("zh", f.Evidence), rendered("zh", f.CounterEvidence)
	wantInChinese(t, d.Name, f)
	if !isCustom(d.Name) {
		wantNamesMarked(t, d.Name, f, fx.keys)
	}
	if f.Cause.ID != d.Cause.ID {
		got.Cause = catalogue.Text("en", f.Cause)
	}
	if f.Remedy.ID != d.Remedy.ID {
		got.Remedy = catalogue.Text("en", f.Remedy)
	}
	for _, s := range []locksteward.Message{f.Summary, f.Cause, f.Remedy} {
		en, zh := catalogue.Text("en", s), catalogue.Text("zh", s)
		if en == "" || zh == "" || strings.Contains(en+zh, s.ID+" (") || strings.Contains(en+zh, "%!") {
			t.Errorf("%s: message %+v is not whole in both languages", d.Name, s)
		}
	}
	return got
}

// keysIn are the names of locks in a fixture.
func keysIn(t *testing.T, input []byte) []string {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(input, &root); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == "key" {
				out = append(out, n.Content[i+1].Value)
			}
			walk(c)
		}
	}
	walk(&root)
	return out
}

// wantNamesMarked fails if a message names a lock that is no argument of its kind: receivers with key_names
// would be sent the name.
func wantNamesMarked(t *testing.T, rule string, f locksteward.Finding, keys []string) {
	t.Helper()
	for _, text := range append([]locksteward.Message{f.Summary, f.Cause, f.Remedy}, slices.Concat(f.Evidence, f.CounterEvidence)...) {
		for _, lang := range []string{"en", "zh"} {
			shown := catalogue.Naming(lang, text, func(string) string { return "" })
			for _, key := range keys {
				if strings.Contains(shown, key) || strings.Contains(shown, locksteward.DisplayKey(key)) {
					t.Errorf("%s: %q names %q without locksteward.LockName", rule, catalogue.Text(lang, text), key)
				}
			}
		}
	}
}

func orDefault(name string) string {
	if name == "" {
		return class.Default
	}
	return name
}

func decodeStrict(t *testing.T, path string, data []byte, into any) {
	t.Helper()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func ago(now time.Time, d *time.Duration) time.Time {
	if d == nil {
		return time.Time{}
	}
	return now.Add(-*d)
}

func (h fixtureHolder) holder() locksteward.Holder {
	return locksteward.Holder{App: h.App, Host: h.Host, PID: h.PID, Session: h.Session, Instance: h.Instance}
}

func (c fixtureClaim) claim(now time.Time) locksteward.Claim {
	return locksteward.Claim{
		ID: c.ID, Purpose: c.Purpose, Acquired: ago(now, c.Acquired), Renewed: ago(now, c.Renewed),
		Progress: ago(now, c.Progress), TTL: c.TTL, RenewEvery: c.RenewEvery, Expect: c.Expect, MaxHold: c.MaxHold,
		Renewals: c.Renewals, RenewFailures: c.RenewFailures, Fence: c.Fence,
	}
}

func (f fixtureLock) lock(now time.Time) locksteward.Lock {
	l := locksteward.Lock{
		Observation: locksteward.Observation{
			Target: "redis", Key: f.Key, Type: "string", At: now,
			TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt, Idle: f.Idle,
			Kind: locksteward.KindLock, Class: class.Default, Configured: f.Configured,
			Library: f.Library, Confidence: locksteward.Confidence(f.Confidence), Identity: locksteward.Identity(f.Identity),
			TokenDigest: "hmac-sha256:00", SharedToken: f.Shared, TokenKind: f.TokenKind,
			Holder: f.Holder.holder(), Count: 1, Waiters: f.Waiters, RenewEvery: f.RenewEvery,
			Acquired: ago(now, f.Written), Asked: f.Asked,
		},
		History: locksteward.History{
			FirstSeen: ago(now, f.History.FirstSeen), LastSeen: now, Looks: f.History.Looks,
			Renewals: f.History.Renewals, LastRenewal: ago(now, f.History.LastRenewal), RenewEvery: f.History.RenewEvery,
			HadTTL: f.History.HadTTL,
		},
	}
	if f.TTL != nil {
		l.TTL, l.ExpireAt = *f.TTL, now.Add(*f.TTL).UnixMilli()
	}
	l.Type, l.Lifetime = cmp.Or(f.Type, l.Type), locksteward.Lifetime(f.Lifetime)
	if s := f.Session; s != nil {
		l.Session = &locksteward.Session{
			ID: s.ID, User: s.User, Addr: s.Addr, Since: ago(now, s.Since), State: locksteward.SessionState(s.State), StateSince: ago(now, s.StateSince), Locks: s.Locks,
		}
	}
	if a := f.Absence; a != nil {
		l.Absence = &locksteward.Absence{From: a.From, Since: ago(now, a.Since), Looks: a.Looks}
	}
	if f.NoExpireAt {
		l.ExpireAt = 0
	}
	if f.Claim != nil {
		c := f.Claim.claim(now)
		l.Claim = &c
	}
	if f.Beat != nil {
		l.Instance = &locksteward.Instance{ID: f.Holder.Instance, Beat: ago(now, f.Beat)}
	}
	return l
}

func (f fixtureLoss) loss(now time.Time) locksteward.Loss {
	s := locksteward.Loss{
		Target: "redis", Key: f.Key, Class: class.Default, How: locksteward.EndedHow(f.How), At: now,
		Deadline: ago(now, f.Deadline), Claim: f.Claim.claim(now), Holder: f.Holder.holder(),
	}
	if f.Instance || f.Beat != nil {
		s.Instance = &locksteward.Instance{ID: f.Holder.Instance, Beat: ago(now, f.Beat)}
	}
	return s
}
