package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/users"
)

// maxDrawn bounds the nodes of a drawing, maxReported the lines of its table: beyond
// that neither is looked at, and the page would be too large.
const (
	maxDrawn    = 80
	maxReported = 50
)

// graphData is the wait-for graph as a drawing and as text.
type graphData struct {
	Targets       pick
	Filtered      bool
	Width, Height int
	Nodes         []drawnNode
	Edges         []drawnEdge
	Waits         []waitText
	MoreWaits     int
	Cycles        []cycleText
	Locks         int
	// LeftOut is how many locks are not drawn.
	LeftOut int
}

type drawnNode struct {
	X, Y                 int
	Kind                 string // lock or session
	Title, Label, Second string
	Link                 string
	Cycle, Firing        bool
}

type drawnEdge struct {
	Path         string
	Holds, Cycle bool
	Inferred     bool
}

// waitText is one line of the table: a lock, who has it, who waits.
type waitText struct {
	api.GraphLock
	Bytes   string // exact key
	Holder  string
	Since   time.Time
	Waiters []string
	More    int
	Cycle   bool
}

// cycleText is a deadlock in words.
type cycleText struct {
	Steps  []string
	Victim string
	Proven bool
}

// graph answers GET /graph.
func (s *Server) graph(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "target")
	if err := q.err(); err != nil {
		return err
	}
	g, err := s.deps.Graphs.Graph(q.text("target"))
	if err != nil {
		return err
	}
	data := graphData{LeftOut: g.LeftOut, Filtered: q.text("target") != ""}
	data.Targets = pick{Label: "Target", Name: "target", All: "all targets"}
	for _, t := range s.deps.Targets.Targets() {
		data.Targets.add(t.Name, t.Name, q.text("target"))
	}
	data.Targets.keep(q.text("target"))
	draw(&data, g, s.view(r, who, pageSpec{}))
	return s.show(w, r, who, pageSpec{name: "graph", section: "/graph", title: "Who waits for whom", data: data})
}

func draw(data *graphData, g api.Graph, v view) {
	d := drawing{graph: g, nodes: map[string]api.GraphNode{}, cycle: map[string]bool{}, holds: map[string][]api.GraphEdge{}, waits: map[string][]api.GraphEdge{}}
	for _, n := range g.Nodes {
		d.nodes[n.ID] = n
	}
	for _, e := range g.Edges {
		if e.Cycle {
			d.cycle[e.From], d.cycle[e.To] = true, true
		}
		if e.Kind == api.EdgeHolds {
			d.holds[e.To] = append(d.holds[e.To], e)
		} else {
			d.waits[e.To] = append(d.waits[e.To], e)
		}
	}
	for _, c := range g.Cycles {
		data.Cycles = append(data.Cycles, d.describeCycle(c))
	}
	locks := d.locks()
	data.Locks = len(locks) + g.LeftOut
	data.LeftOut += d.choose(locks)
	d.place(data, v)
	d.describe(data, locks)
}

// drawing is a graph on its way to the page.
type drawing struct {
	graph        api.Graph
	nodes        map[string]api.GraphNode
	cycle        map[string]bool
	holds, waits map[string][]api.GraphEdge // by lock
	drawn        []string
}

// locks are the ids of the locks: those of deadlocks first, then by how many
// wait.
func (d *drawing) locks() []string {
	var out []string
	for _, n := range d.graph.Nodes {
		if n.Lock != nil {
			out = append(out, n.ID)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		if d.cycle[a] != d.cycle[b] {
			if d.cycle[a] {
				return -1
			}
			return 1
		}
		return d.nodes[b].Lock.Waiters - d.nodes[a].Lock.Waiters
	})
	return out
}

// choose picks what is drawn: whole locks with all who have them or wait, as long
// as there is room. It returns how many locks there is none for.
func (d *drawing) choose(locks []string) (without int) {
	in := map[string]bool{}
	for _, id := range locks {
		more := []string{id}
		for _, e := range slices.Concat(d.holds[id], d.waits[id]) {
			if !in[e.From] && !slices.Contains(more, e.From) {
				more = append(more, e.From)
			}
		}
		if len(d.drawn)+len(more) > maxDrawn {
			// A lock that thousands wait for is drawn with some of them.
			if len(d.drawn) > 0 {
				without++
				continue
			}
			more = more[:maxDrawn]
		}
		for _, one := range more {
			in[one] = true
			d.drawn = append(d.drawn, one)
		}
	}
	return without
}

func (d *drawing) place(data *graphData, v view) {
	in := map[string]bool{}
	for _, id := range d.drawn {
		in[id] = true
	}
	var arrows []arrow
	for _, e := range d.graph.Edges {
		if e.Kind == api.EdgeHolds {
			arrows = append(arrows, arrow{e.To, e.From})
		} else {
			arrows = append(arrows, arrow{e.From, e.To})
		}
	}
	boxes, width, height := layOut(d.drawn, arrows)
	data.Width, data.Height = width, height
	for i, e := range d.graph.Edges {
		if a := arrows[i]; in[e.From] && in[e.To] {
			data.Edges = append(data.Edges, drawnEdge{Path: curve(boxes[a.from], boxes[a.to]), Holds: e.Kind == api.EdgeHolds, Cycle: e.Cycle, Inferred: e.Inferred})
		}
	}
	slices.SortStableFunc(data.Edges, func(a, b drawnEdge) int { // those of deadlocks on top
		switch {
		case a.Cycle == b.Cycle:
			return 0
		case b.Cycle:
			return -1
		default:
			return 1
		}
	})
	for _, n := range d.graph.Nodes {
		if !in[n.ID] {
			continue
		}
		b := boxes[n.ID]
		one := drawnNode{X: b.x, Y: b.y, Kind: n.Kind, Cycle: d.cycle[n.ID]}
		if n.Lock != nil {
			key, err := n.Lock.Bytes()
			if err == nil {
				one.Title, one.Link = shortKey(key), v.LockAt(n.Lock.Target, n.Lock.DB, key)
			}
			one.Firing = len(n.Lock.Firing) > 0
			one.Second = plural.Count(n.Lock.Waiters, "waiter")
		} else {
			one.Title = middle(inert(sessionName(n.Session)), 60)
			one.Second = "session"
			if n.Session.Waiting > 1 {
				one.Second = plural.Count(n.Session.Waiting, "call") + " waiting"
			}
		}
		one.Label = middle(one.Title, 23)
		data.Nodes = append(data.Nodes, one)
	}
}

// curve is the line from one box to another; one that leads back goes around
// below.
func curve(from, to *box) string {
	x1, y1 := from.x+nodeWidth, from.y+nodeHeight/2
	x2, y2 := to.x, to.y+nodeHeight/2
	if to.col > from.col {
		bend := (x2 - x1) / 2
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2-3, y2)
	}
	low := max(y1, y2) + nodeHeight/2 + 8
	return fmt.Sprintf("M%d %dH%dV%dH%dV%dH%d", x1, y1, x1+22, low, x2-26, y2, x2-3)
}

// middle cuts a text to n characters: the end tells more than the middle.
func middle(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	tail := n / 3
	return string(runes[:n-tail-1]) + "…" + string(runes[len(runes)-tail:])
}

func (d *drawing) describe(data *graphData, locks []string) {
	for _, id := range locks {
		if len(data.Waits) == maxReported {
			data.MoreWaits = len(locks) - maxReported
			return
		}
		l := d.nodes[id].Lock
		one := waitText{GraphLock: *l, Cycle: d.cycle[id], Holder: "not known"}
		one.Bytes, _ = l.Key.Bytes()
		for _, e := range d.holds[id] {
			one.Holder, one.Since = d.name(e.From), e.Since
		}
		one.Waiters, one.More = d.waiters(id, l.Waiters)
		data.Waits = append(data.Waits, one)
	}
}

// waiters names up to three who wait for a lock, with the number of their sessions, and
// returns how many of all are not among them.
func (d *drawing) waiters(id string, all int) (names []string, more int) {
	sessions := map[string]int{}
	for _, e := range d.waits[id] {
		name := d.name(e.From)
		if sessions[name] == 0 && len(names) == 3 {
			continue
		}
		if sessions[name]++; sessions[name] == 1 {
			names = append(names, name)
		}
		all--
	}
	for i, name := range names {
		if n := sessions[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d sessions)", name, n)
		}
	}
	return names, all
}

func (d *drawing) name(id string) string { return sessionName(d.nodes[id].Session) }

func (d *drawing) describeCycle(c api.GraphCycle) cycleText {
	out := cycleText{Victim: d.name(c.Victim), Proven: c.Proven}
	for i := 0; i+1 < len(c.Nodes); i += 2 {
		key := "a lock"
		if l := d.nodes[c.Nodes[i+1]].Lock; l != nil {
			if raw, err := l.Key.Bytes(); err == nil {
				key = showKey(raw)
			}
		}
		out.Steps = append(out.Steps, d.name(c.Nodes[i])+" waits for "+key)
	}
	return out
}

// Text is a cycle in one sentence.
func (c cycleText) Text() string { return strings.Join(c.Steps, ", ") }
