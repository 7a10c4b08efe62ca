package transport

import "strconv"

// At returns the i-th part of a reply; nil if it has not that many.
func At(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// Text returns a text in a reply; "" for anything else.
func Text(v any) string {
	s, _ := v.(string)
	return s
}

// Number returns an integer in a reply, or that of a decimal text; 0 for anything else.
func Number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}
