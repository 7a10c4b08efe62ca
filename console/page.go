package console

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

//go:embed web
var web embed.FS

// pages are the templates by the name of their file: layout.html around each,
// with what parts.html defines.
var pages = parsePages()

func parsePages() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(pageFuncs).ParseFS(web, "web/layout.html", "web/parts.html"))
	files, _ := fs.Glob(web, "web/*.html") // the pattern is right
	out := make(map[string]*template.Template, len(files))
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "web/"), ".html")
		if name != "layout" && name != "parts" {
			out[name] = template.Must(template.Must(base.Clone()).ParseFS(web, file))
		}
	}
	return out
}

// pageSpec is one page for one request.
type pageSpec struct {
	name    string // of the template
	section string // path of the page's entry in the navigation
	title   string
	status  int // 0: 200
	data    any
	problem *api.Problem
	typed   url.Values // a form that was refused, to be shown again
	once    bool       // the answer to a form: the script must not fetch it again
	bare    bool       // without navigation: nobody is signed in
}

// view is what the templates get: what every page has, and its own data as P.
// Nothing in P is trusted to be harmless.
type view struct {
	Title   string
	Lang    string
	Now     time.Time
	User    string
	NoUsers bool
	CSRF    string
	Refresh int
	Live    bool
	Alarm   int // findings that are notified
	Nav     []navItem
	// More are the links that are folded away; MoreCurrent says that one of them is this page.
	More        []navItem
	MoreCurrent bool
	// Bare says that nobody is signed in: there is no navigation.
	Bare    bool
	Problem *api.Problem
	Query   url.Values
	P       any
	// OneFinding shows findings with their evidence open.
	OneFinding bool
	// Brief shows findings with their remedy folded away.
	Brief bool
	// OwnLock leaves out the lock of findings: it is what the page is about.
	OwnLock bool

	who   users.User
	path  string
	query url.Values
	typed url.Values
}

// navItem is a link of the navigation. Count is what waits there; What says it in
// words, or what the page is, and Kind how bad it is.
type navItem struct {
	Path, Name string
	Current    bool
	Count      int
	What, Kind string
}

// sections are the pages of the navigation; those in more are under "More", with a word on each.
var (
	sections = []navItem{
		{Path: "/", Name: "Overview"},
		{Path: "/findings", Name: "Findings"},
		{Path: "/locks", Name: "Locks"},
		{Path: "/requests", Name: "Requests"},
		{Path: "/audit", Name: "Audit"},
	}
	more = []navItem{
		{Path: "/graph", Name: "Waits", What: "who waits for whom"},
		{Path: "/targets", Name: "Targets", What: "stores that are watched"},
		{Path: "/classes", Name: "Classes", What: "families of locks"},
		{Path: "/rules", Name: "Rules", What: "what is looked for"},
		{Path: "/silences", Name: "Silences", What: "muted notifications"},
		{Path: "/notifications", Name: "Notifications", What: "who was notified, and what failed"},
		{Path: releasePausePath, Name: "Release pause", What: "stop releases for a while"},
	}
)

// show renders a page into memory first: an error becomes an error page, not half
// a page.
func (s *Server) show(w http.ResponseWriter, r *http.Request, who users.User, p pageSpec) error {
	v := s.view(r, who, p)
	if !p.bare {
		if err := s.navigate(r, &v, p.section); err != nil {
			return err
		}
	}
	return writePage(w, p, v)
}

func writePage(w http.ResponseWriter, p pageSpec, v view) error {
	t, ok := pages[p.name]
	if !ok {
		return fmt.Errorf("no page is called %q", p.name)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, "layout", v); err != nil {
		return fmt.Errorf("render page %q: %w", p.name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	// A client that went away is no fault of ours.
	_, _ = w.Write(out.Bytes())
	return nil
}

func (s *Server) view(r *http.Request, who users.User, p pageSpec) view {
	query := r.URL.Query()
	v := view{
		Title: p.title, Lang: "en", Now: time.Now(), User: who.Name, NoUsers: s.authenticator.Open(), CSRF: s.formToken(r),
		Problem: p.problem, P: p.data, Bare: p.bare, who: who, path: r.URL.Path, typed: p.typed, Query: query,
	}
	if query.Get("lang") == "zh" {
		v.Lang = "zh"
	}
	// No page refreshes itself under somebody's typing, nor sends a form again.
	v.Live = !p.once && r.Method == http.MethodGet && !p.bare
	if v.Live {
		v.Refresh = refreshOf(query.Get("refresh"))
	}
	query.Del("lang")
	query.Del("refresh")
	v.query = query
	return v
}

// refreshOf is how often a page loads itself again, in seconds; 0: not.
func refreshOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 5 && n <= 3600 {
		return n
	}
	return 0
}

// navigate fills in the links to all pages with what waits there.
func (s *Server) navigate(r *http.Request, v *view, section string) error {
	open, err := s.deps.Requests.List(r.Context(), RequestFilter{States: []locksteward.RequestState{locksteward.RequestPending}, Limit: countMost})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	kind := "warning"
	findings, _ := s.unsilenced(s.deps.Findings.Findings())
	for _, f := range findings {
		if isNotified(f) {
			v.Alarm++
			if f.Severity == locksteward.SeverityCritical {
				kind = "critical"
			}
		}
	}
	v.link(section)
	for i := range v.Nav {
		item := &v.Nav[i]
		switch sections[i].Path {
		case "/findings":
			item.Count, item.What, item.Kind = v.Alarm, "need a person", kind
		case "/requests":
			item.Count, item.What, item.Kind = len(open), "wait for a decision", "warning"
		}
	}
	return nil
}

// link fills in the links to all pages.
func (v *view) link(section string) {
	items := func(list []navItem) []navItem {
		list = slices.Clone(list)
		for i := range list {
			list[i].Current = list[i].Path == section
			list[i].Path = v.To(list[i].Path)
		}
		return list
	}
	v.Nav, v.More = items(sections), items(more)
	v.MoreCurrent = slices.ContainsFunc(v.More, func(item navItem) bool { return item.Current })
}

// countMost bounds what is counted for a number in the navigation.
const countMost = 99

// isNotified reports whether a finding is notified now, unless it is silenced.
func isNotified(f locksteward.Finding) bool {
	return f.Status == locksteward.StatusFiring && f.Severity >= locksteward.SeverityWarning && f.InhibitedBy == ""
}

// problemPage answers with a problem as a page. It needs nothing that may be
// broken: it is shown when other pages cannot be rendered.
func (s *Server) problemPage(w http.ResponseWriter, r *http.Request, who users.User, p *api.Problem) {
	page := pageSpec{name: "problem", title: p.Title, status: p.Status, problem: p, once: p.Code != api.CodeUnavailable && p.Code != api.CodeNotFound}
	v := s.view(r, who, page)
	if p.Code != api.CodeUnauthenticated && p.Code != api.CodeMisdirected {
		v.link("")
	}
	if err := writePage(w, page, v); err != nil {
		s.log.Error("problem page is not shown", zap.Error(err))
		writeProblem(w, p)
	}
}

// To is the address of a page, with the language of this one; pairs are its
// parameters, of which empty ones are left out.
func (v view) To(path string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return v.address(path, query)
}

func (v view) address(path string, query url.Values) string {
	if v.Lang != "en" {
		query.Set("lang", v.Lang)
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// With is the address of this page with one parameter set, or taken away by "".
// Another filter begins with the first page again.
func (v view) With(name, value string) string {
	query := clone(v.query)
	query.Del("cursor")
	if query.Set(name, value); value == "" {
		query.Del(name)
	}
	return v.address(v.path, query)
}

// Here is the address of this page.
func (v view) Here() string { return v.address(v.path, clone(v.query)) }

// Refreshed is the address of this page that loads itself again.
func (v view) Refreshed() string {
	query := clone(v.query)
	query.Set("refresh", "10")
	return v.address(v.path, query)
}

// InEnglish and InChinese are the address of this page with findings in that
// language.
func (v view) InEnglish() string { v.Lang = "en"; return v.Here() }

// InChinese is as InEnglish.
func (v view) InChinese() string { v.Lang = "zh"; return v.Here() }

// Opened is a finding with its evidence in sight: it is what the page is about.
func (v view) Opened(row *findingRow) args {
	v.OneFinding = true
	return args{v, *row}
}

// Short is a finding among many.
func (v view) Short(row findingRow) args {
	v.Brief = true
	return args{v, row}
}

// Card is a card of one finding or several.
func (v view) Card(card findingCard) args { return args{v, card} }

// OfLock is a finding on the page of its lock.
func (v view) OfLock(row findingRow) args {
	v.OwnLock = true
	return args{v, row}
}

// LockAt is the address of a lock's page.
func (v view) LockAt(target string, db int, key string) string {
	name, value := keyParameter(key)
	return v.To("/locks/one", "target", target, "db", strconv.Itoa(db), name, value)
}

// Typed is what was typed into a field of the form that is shown again.
func (v view) Typed(name string) string { return inertTyped(v.typed.Get(name)) }

// Ticked says that a box of that form was ticked, or that this choice was made.
func (v view) Ticked(name, value string) bool { return v.typed.Get(name) == value }

// May says that the user's roles grant a verb.
func (v view) May(verb string) bool { return v.who.Can(users.Verb(verb)) }

// Is says that the user is called so.
func (v view) Is(name string) bool { return v.User != "" && strings.EqualFold(v.User, name) }

// RoleNames are the user's roles in words.
func (v view) RoleNames() string {
	var names []string
	for _, r := range v.who.Roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

func clone(query url.Values) url.Values {
	out := make(url.Values, len(query))
	for name, values := range query {
		out[name] = slices.Clone(values)
	}
	return out
}

// pageQuery reads the parameters of a page; every page knows the language and
// how often it loads itself again.
func pageQuery(r *http.Request, allowed ...string) *query {
	q := parseQuery(r, append(allowed, "lang", "refresh")...)
	q.lang()
	q.number("refresh", 0, 5, 3600)
	return q
}

// asset answers with a file of web/, which holds nothing secret.
func asset(name, mediaType string) http.Handler {
	raw, err := web.ReadFile("web/" + name)
	if err != nil {
		panic(errors.New("console: " + name + " is not embedded")) // tests serve every asset
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(raw)
	})
}
