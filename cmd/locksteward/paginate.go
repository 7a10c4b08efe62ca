package main

// maxPageSize is the largest page of a list that an agent returns.
const maxPageSize = 1000

// paginate reads pages of a list until it has limit items, or all for 0. page returns the
// next n items, and whether there are more.
func paginate[T any](limit, most int, page func(n int) (items []T, more bool, err error)) ([]T, error) {
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
