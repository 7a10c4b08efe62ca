// Package suggest suggests the word that was probably meant, in errors of
// configuration and expressions. Its functions are pure.
package suggest

// tooFar is from how many edits on a word is another one.
const tooFar = 3

// Nearest returns the word that is the fewest edits away from got, the first of
// those that are equally near; "" if none is within two. A word may be written in
// several ways: forms gives them all, and nil stands for the word itself.
func Nearest(got string, words []string, forms func(word string) []string) string {
	best, distance := "", tooFar
	for _, w := range words {
		ways := []string{w}
		if forms != nil {
			ways = forms(w)
		}
		for _, way := range ways {
			if d := edits(got, way); d < distance {
				best, distance = w, d
			}
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
