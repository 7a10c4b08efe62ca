package class

import "strings"

// index finds the first class that claims a key. It is a radix tree over the
// literal prefixes of all patterns: a key that begins like none of them costs
// one look at the root, whatever the number of classes.
type index struct {
	root node
}

// node holds the patterns whose prefix ends here.
type node struct {
	edge     string // bytes between the parent and this node
	patterns []pattern
	// labels are the first bytes of the children's edges, in the same order.
	labels   string
	children []*node
}

// pattern is a glob and the position of its class in the configured order.
type pattern struct {
	class int
	glob  glob
}

// add puts p in; calls come in the order of the classes, so that the patterns
// of one node are in that order too.
func (x *index) add(p pattern) {
	n, rest := &x.root, p.glob.prefix
	for rest != "" {
		i := strings.IndexByte(n.labels, rest[0])
		if i < 0 {
			leaf := &node{edge: rest}
			n.labels += rest[:1]
			n.children = append(n.children, leaf)
			n, rest = leaf, ""
			break
		}
		child := n.children[i]
		common := commonPrefix(child.edge, rest)
		if common < len(child.edge) {
			// Split the edge where the two prefixes part.
			upper := &node{edge: child.edge[:common], labels: child.edge[common : common+1], children: []*node{child}}
			child.edge = child.edge[common:]
			n.children[i] = upper
			child = upper
		}
		n, rest = child, rest[common:]
	}
	n.patterns = append(n.patterns, p)
}

// first returns the smallest class position whose pattern matches key, or -1.
// It does not allocate.
func (x *index) first(key string) int {
	best := -1
	n, rest := &x.root, key
	for {
		for i := range n.patterns {
			p := &n.patterns[i]
			if best >= 0 && p.class >= best {
				break
			}
			if p.glob.matchRest(rest) {
				best = p.class
				break
			}
		}
		if rest == "" || n.labels == "" {
			return best
		}
		i := strings.IndexByte(n.labels, rest[0])
		if i < 0 {
			return best
		}
		n = n.children[i]
		if !strings.HasPrefix(rest, n.edge) {
			return best
		}
		rest = rest[len(n.edge):]
	}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
