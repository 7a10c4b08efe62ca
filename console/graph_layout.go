package console

import (
	"cmp"
	"slices"
)

// A wait-for graph is drawn in columns: waiters are left of what they wait
// for, and that left of who has it. The same graph is drawn the same way each
// time, so that a page that follows it does not jump about.

// Sizes of the drawing, in its own units.
const (
	nodeWidth  = 200
	nodeHeight = 44
	columnStep = 260
	rowStep    = 60
	graphEdge  = 48 // empty space beside, for lines that lead back
	graphTop   = 12
)

// box is where a node is drawn.
type box struct {
	id   string
	col  int
	row  int
	x, y int
}

// arrow leads from one node to another.
type arrow struct{ from, to string }

// layOut places nodes by the arrows between them, and returns the size of the
// drawing. Arrows of unknown nodes are ignored.
func layOut(ids []string, arrows []arrow) (boxes map[string]*box, width, height int) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	boxes = make(map[string]*box, len(ids))
	for _, id := range ids {
		boxes[id] = &box{id: id}
	}
	out := map[string][]string{}
	for _, a := range arrows {
		if boxes[a.from] != nil && boxes[a.to] != nil && a.from != a.to && !slices.Contains(out[a.from], a.to) {
			out[a.from] = append(out[a.from], a.to)
		}
	}
	for _, id := range ids {
		slices.Sort(out[id])
	}
	order := forward(ids, out)
	columns := assignColumns(order, out, boxes)
	for range 4 {
		settle(columns, out, boxes)
	}
	for _, column := range columns {
		for row, b := range column {
			b.x, b.y = graphEdge+b.col*columnStep, graphTop+row*rowStep
			width, height = max(width, b.x+nodeWidth+graphEdge), max(height, b.y+rowStep+graphTop)
		}
	}
	return boxes, width, height
}

// forward returns the nodes so that arrows lead forward, and takes from out those
// that would close a round.
func forward(ids []string, out map[string][]string) []string {
	const (
		under = 1
		done  = 2
	)
	state := map[string]int{}
	var order []string
	var visit func(id string)
	visit = func(id string) {
		state[id] = under
		out[id] = slices.DeleteFunc(out[id], func(to string) bool { return state[to] == under })
		for _, to := range slices.Clone(out[id]) {
			switch state[to] {
			case under: // became so since
				out[id] = slices.DeleteFunc(out[id], func(other string) bool { return other == to })
			case done:
			default:
				visit(to)
			}
		}
		state[id] = done
		order = append(order, id)
	}
	// Who nobody leads to comes first: rounds are broken where one enters them.
	led := map[string]bool{}
	for _, id := range ids {
		for _, to := range out[id] {
			led[to] = true
		}
	}
	for _, first := range []bool{true, false} {
		for _, id := range ids {
			if state[id] == 0 && led[id] != first {
				visit(id)
			}
		}
	}
	slices.Reverse(order)
	return order
}

// assignColumns puts each node one behind the last of those that lead to it.
func assignColumns(order []string, out map[string][]string, boxes map[string]*box) [][]*box {
	var columns [][]*box
	for _, id := range order {
		b := boxes[id]
		for _, to := range out[id] {
			boxes[to].col = max(boxes[to].col, b.col+1)
		}
		for len(columns) <= b.col {
			columns = append(columns, nil)
		}
		b.row = len(columns[b.col])
		columns[b.col] = append(columns[b.col], b)
	}
	return columns
}

// settle orders each column by the positions of its neighbours, forth and back.
func settle(columns [][]*box, out map[string][]string, boxes map[string]*box) {
	into := map[string][]string{}
	for from, list := range out {
		for _, to := range list {
			into[to] = append(into[to], from)
		}
	}
	sweep := func(column []*box, near map[string][]string) {
		weight := map[string]float64{}
		for _, b := range column {
			weight[b.id] = float64(b.row)
			if list := near[b.id]; len(list) > 0 {
				sum := 0
				for _, id := range list {
					sum += boxes[id].row
				}
				weight[b.id] = float64(sum) / float64(len(list))
			}
		}
		slices.SortStableFunc(column, func(a, b *box) int {
			return cmp.Or(cmp.Compare(weight[a.id], weight[b.id]), cmp.Compare(a.id, b.id))
		})
		for row, b := range column {
			b.row = row
		}
	}
	for _, column := range columns {
		sweep(column, into)
	}
	for _, column := range slices.Backward(columns) {
		sweep(column, out)
	}
}
