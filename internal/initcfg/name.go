package initcfg

import (
	"fmt"
	"strings"

	"github.com/locksteward/locksteward/class"
)

// maxClassName keeps names short enough for a column.
const maxClassName = 40

// name gives every family a class name of its own, made of the words of its
// pattern that do not just say lock.
func name(list []Family) {
	taken := map[string]bool{class.Default: true}
	for i := range list {
		base := nameOf(list[i].Match)
		unique := base
		for n := 2; taken[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", base, n)
		}
		taken[unique] = true
		list[i].Name = unique
	}
}

func nameOf(glob string) string {
	words := strings.FieldsFunc(glob, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
	var telling, all []string
	for _, w := range words {
		w = strings.ToLower(w)
		all = append(all, w)
		switch w {
		case "lock", "locks", "mutex", "lck", "redlock":
		default:
			telling = append(telling, w)
		}
	}
	if len(telling) == 0 {
		telling = all
	}
	text := strings.Join(telling, "-")
	if len(text) > maxClassName {
		text = strings.TrimRight(text[:maxClassName], "-")
	}
	if text == "" {
		return "locks"
	}
	return text
}
