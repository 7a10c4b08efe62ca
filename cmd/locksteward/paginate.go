package main

// mostPerPage is how much of a list an agent gives at once.
const mostPerPage = 1000

// gather reads page after page of a list until there are limit items, or all for 0.
// page is asked for n items behind those before, and says whether there are more.
func gather[T any](limit, most int, page func(n int) (items []T, more bool, err error)) ([]T, error) {
	if limit < 0 {
		return nil, usagef("--limit: got %d, write a number, or 0 for all", limit)
	}
	out := []T{}
	for {
		n := most
		if limit > 0 {
			n = min(most, limit-len(out))
		}
		items, more, err := page(n)
		out = append(out, items...)
		if err != nil || !more || limit > 0 && len(out) >= limit {
			return out, err
		}
	}
}
