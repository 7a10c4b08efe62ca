package results

import "strconv"

// Number writes a figure with about three digits, and thousands apart.
func Number(x float64) string {
	switch {
	case x < 0:
		return "-" + Number(-x)
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	text := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Whole writes a count.
func Whole(x float64) string {
	if x == float64(int(x)) && x < 100 {
		return strconv.Itoa(int(x))
	}
	return Number(x)
}
