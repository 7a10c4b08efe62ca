package dashboards_test

import (
	"cmp"
	"flag"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testprom"
)

// drawn is how long the applications work before the pictures are made.
var drawn = flag.Duration("drawn", 3*time.Minute, "how much time the pictures show")

const (
	columns    = 24
	unitWidth  = 50.0
	unitHeight = 30.0
	maxPicture = 400 << 10 // bytes
)

const picturesDir = "../../docs/img/dashboards"

// TestPictures looks for the pictures of the documentation: one for each dashboard.
func TestPictures(t *testing.T) {
	t.Parallel()
	if *pictures {
		t.Skip("they are being drawn")
	}
	for _, b := range readBoards(t) {
		raw, err := os.ReadFile(pictureOf(b))
		if err != nil {
			t.Errorf("%v; run: make screenshots", err)
			continue
		}
		if len(raw) > maxPicture || !strings.HasPrefix(string(raw), "<svg ") || strings.Contains(string(raw), "<script") {
			t.Errorf("%s: %d bytes, want a plain SVG of at most %d", pictureOf(b), len(raw), maxPicture)
		}
		for _, p := range b.Panels {
			begin := p.Title[:min(len(p.Title), 12)] // long ones are cut
			if !strings.Contains(string(raw), ">"+html.EscapeString(begin)) {
				t.Errorf("%s does not show panel %q; run: make screenshots", pictureOf(b), p.Title)
			}
		}
	}
}

func pictureOf(b board) string {
	return filepath.Join(picturesDir, strings.TrimSuffix(b.file, ".json")+".svg")
}

// draw makes the pictures from what Prometheus has by then.
func draw(t *testing.T, prom *testprom.Server, began time.Time) {
	t.Helper()
	wait := time.NewTimer(time.Until(began.Add(*drawn)))
	defer wait.Stop()
	<-wait.C
	if err := os.MkdirAll(picturesDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, b := range readBoards(t) {
		a := artist{t: t, prom: prom, from: began.Add(15 * time.Second).Truncate(time.Second), to: time.Now()}
		if err := os.WriteFile(pictureOf(b), a.board(b), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// artist draws a dashboard from the data of a Prometheus.
type artist struct {
	t        *testing.T
	prom     *testprom.Server
	from, to time.Time
	canvas
}

func (a *artist) board(b board) []byte {
	const head = 40
	height := 0
	for _, p := range b.Panels {
		height = max(height, p.GridPos.Y+p.GridPos.H)
	}
	w, h := columns*unitWidth+16, float64(height)*unitHeight+head+24
	a.rect(box{0, 0, w, h}, ground, 1)
	a.text(12, 26, "h", ink, b.Title)
	for _, p := range b.Panels {
		g := p.GridPos
		at := box{8 + float64(g.X)*unitWidth, head + float64(g.Y)*unitHeight, float64(g.W) * unitWidth, float64(g.H) * unitHeight}
		if p.Type == "row" {
			title := p.Title
			if n := len(p.Panels); n > 0 {
				title += fmt.Sprintf(" (closed: %d panels)", n)
			}
			a.text(at.x+4, at.y+20, "r", ink, title)
			continue
		}
		a.panel(p, at.inset(3, 3, 3, 3))
	}
	a.text(12, h-8, "s", faint, "Drawn by Locksteward's own tests from the data of a real Prometheus, not by Grafana: colours and details differ there.")
	return a.page(w, h)
}

func (a *artist) panel(p panel, at box) {
	a.t.Helper()
	a.rect(at, paper, 1)
	a.text(at.x+8, at.y+17, "t", ink, fit(p.Title, at.w-12, 6.4))
	body := at.inset(8, 26, 8, 8)
	switch p.Type {
	case "stat":
		a.stat(p, body)
	case "table":
		a.table(p, body)
	case "state-timeline":
		a.states(p, body)
	case "heatmap":
		a.heatmap(p, body)
	case "timeseries":
		a.lines(p, body)
	default:
		a.t.Errorf("panel %q is a %s, which cannot be drawn", p.Title, p.Type)
	}
}

// line is a series with the name that the panel gives it.
type line struct {
	name   string
	labels map[string]string
	at     map[int]float64 // by step
	last   float64
}

// step is the time between two points, steps how many there are.
func (a *artist) step() time.Duration {
	const most = 120
	return max(time.Second, (a.to.Sub(a.from) / most).Truncate(time.Millisecond))
}

func (a *artist) steps() int { return int(a.to.Sub(a.from) / a.step()) }

// ask returns the series of a panel; an instant one has the last step alone.
func (a *artist) ask(p panel) []line {
	a.t.Helper()
	var out []line
	for _, q := range p.Targets {
		expr := filled(q.Expr, a.to.Sub(a.from))
		var found []testprom.Series
		var err error
		if q.Instant {
			found, err = a.prom.Instant(a.t.Context(), expr, a.to)
		} else {
			found, err = a.prom.Range(a.t.Context(), expr, a.from, a.to, a.step())
		}
		if err != nil {
			a.t.Fatalf("panel %q: %v", p.Title, err)
		}
		for _, s := range found {
			l := line{name: named(q.LegendFormat, s.Labels), labels: s.Labels, at: map[int]float64{}, last: math.NaN()}
			for _, point := range s.Points {
				if !math.IsNaN(point.Value) {
					l.at[int(point.At.Sub(a.from)/a.step())] = point.Value
					l.last = point.Value
				}
			}
			out = append(out, l)
		}
	}
	return out
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// named is the legend of a series.
func named(format string, labels map[string]string) string {
	if format == "" || format == "__auto" {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			parts = append(parts, labels[name])
		}
		return strings.Join(parts, " ")
	}
	// Instances are ports of this machine, which tell a reader nothing.
	return strings.TrimSpace(placeholder.ReplaceAllStringFunc(format, func(m string) string {
		name := placeholder.FindStringSubmatch(m)[1]
		if name == "instance" {
			return "agent"
		}
		return labels[name]
	}))
}

// color is that of the threshold which a value has reached.
func (p panel) color(v float64) string {
	out := "blue"
	for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
		if s.Value == nil || v >= *s.Value {
			out = s.Color
		}
	}
	return cmp.Or(colors[out], out)
}

// mapped is the text for a value, if there is one.
func (p panel) mapped(v float64) (string, bool) {
	for _, m := range p.FieldConfig.Defaults.Mappings {
		if o, ok := m.Options[strconv.FormatFloat(v, 'f', -1, 64)]; ok {
			return o.Text, true
		}
	}
	return "", false
}

// stat shows each series beside the others.
func (a *artist) stat(p panel, at box) {
	d := p.FieldConfig.Defaults
	found := a.ask(p)
	if len(found) == 0 {
		a.fitted(at, faint, d.NoValue)
		return
	}
	width := at.w / float64(len(found))
	for i, l := range found {
		v := l.last
		if d.Decimals != nil {
			v = math.Round(v)
		}
		part := box{at.x + float64(i)*width, at.y, width, at.h}
		text := shown(v, d.Unit)
		if m, ok := p.mapped(v); ok {
			text = m
		}
		switch p.Options.TextMode {
		case "name":
			text = cmp.Or(l.name, "none")
		case "value_and_name":
			a.text(part.x+4, part.y+10, "s", ink, fit(l.name, width-8, 5.6))
		}
		a.fitted(part, p.color(v), text)
	}
}

// fitted is text in the middle of a box, small if it is long.
func (a *artist) fitted(at box, color, text string) {
	class, letter := "b", 14.5
	if float64(len(text))*letter > at.w {
		class, letter = "m", 6.2
	}
	a.text(at.x+at.w/2, at.y+at.h/2+10, class, color, fit(text, at.w, letter))
}

func (a *artist) table(p panel, at box) {
	d := p.FieldConfig.Defaults
	rows := a.ask(p)
	slices.SortStableFunc(rows, func(x, y line) int { return cmp.Compare(y.last, x.last) })
	order, rename := map[string]int{}, map[string]string{}
	for _, tr := range p.Transformations {
		if tr.ID == "sortBy" {
			by := tr.Options.Sort[0].Field
			slices.SortStableFunc(rows, func(x, y line) int { return cmp.Compare(x.labels[by], y.labels[by]) })
			continue
		}
		order, rename = tr.Options.IndexByName, tr.Options.RenameByName
	}
	names := slices.SortedFunc(maps.Keys(order), func(x, y string) int { return cmp.Compare(order[x], order[y]) })
	names = slices.DeleteFunc(names, p.hides)
	if len(rows) == 0 {
		a.fitted(at, faint, d.NoValue)
	}
	width := at.w / float64(len(names))
	for i, name := range names {
		x := at.x + float64(i)*width
		a.text(x, at.y+10, "s", faint, cmp.Or(rename[name], name))
		for n, r := range rows[:min(len(rows), int(at.h/18)-1)] {
			text := r.labels[name]
			if name == "Value" {
				text = shown(r.last, d.Unit)
			}
			color := map[string]string{"critical": colors["red"], "warning": colors["orange"], "info": colors["blue"]}[text]
			a.text(x, at.y+28+float64(n)*18, "s", cmp.Or(color, ink), fit(text, width-4, 5.6))
		}
	}
}

// hides says whether a column is there for links and order alone.
func (p panel) hides(column string) bool {
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if o.Matcher.Options == column && property.ID == "custom.hidden" {
				return true
			}
		}
	}
	return false
}

func (a *artist) states(p panel, at box) {
	found := a.ask(p)
	if len(found) == 0 {
		a.fitted(at, faint, p.FieldConfig.Defaults.NoValue)
	}
	found = found[:min(len(found), 8)]
	const names = 150
	height, steps := min(at.h/float64(max(len(found), 1)), 34), a.steps()
	width := (at.w - names) / float64(steps)
	for i, l := range found {
		y := at.y + float64(i)*height
		a.text(at.x, y+height/2+3, "s", ink, fit(l.name, names-6, 5.4))
		for first := 0; first <= steps; {
			v, ok := l.at[first]
			end := first + 1
			for now, still := l.at[end]; ok && still && now == v && end <= steps; now, still = l.at[end] {
				end++
			}
			if ok {
				b := box{at.x + names + float64(first)*width, y + 3, float64(min(end, steps)-first) * width, height - 6}
				a.rect(b, p.color(v), 0.8)
				if text, known := p.mapped(v); known && b.w > 40 {
					a.text(b.x+6, y+height/2+3, "s", ground, text)
				}
			}
			first = end
		}
	}
}

func (a *artist) heatmap(p panel, at box) {
	found := a.ask(p)
	bound := func(l line) float64 {
		v, err := strconv.ParseFloat(l.labels["le"], 64)
		if err != nil {
			a.t.Fatalf("panel %q: bucket %q", p.Title, l.labels["le"])
		}
		return v
	}
	slices.SortFunc(found, func(x, y line) int { return cmp.Compare(bound(x), bound(y)) })
	most := 0.0
	cell := func(i, step int) float64 {
		v := found[i].at[step]
		if i > 0 {
			v -= found[i-1].at[step]
		}
		return v
	}
	for i := range found {
		for step := range a.steps() + 1 {
			most = max(most, cell(i, step))
		}
	}
	const names = 44
	height, width := at.h/float64(max(len(found), 1)), (at.w-names)/float64(a.steps()+1)
	for i, l := range found {
		y := at.y + at.h - float64(i+1)*height
		label := "more"
		if b := bound(l); !math.IsInf(b, 1) {
			label = shown(b, "s")
		}
		a.text(at.x+names-6, y+height/2+3, "e", faint, label)
		for step := range a.steps() + 1 {
			if v := cell(i, step); v > 0.01*most {
				share := math.Sqrt(v / most)
				a.rect(box{at.x + names + float64(step)*width, y, width, height - 1}, fmt.Sprintf("#ff%02x%02x", 235-int(130*share), 200-int(190*share)), 0.25+0.75*share)
			}
		}
	}
}
