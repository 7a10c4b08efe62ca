package class

// The built-in patterns say of a key that no class claims whether its name
// speaks of a lock. They are ASCII and ignore case.
//
// Word: `lock`, `locks`, `mutex`, `lck` or `redlock` stands alone, between the
// separators `: . _ - / { }`, the ends of the name, or camelCase edges
// (orderLock, DBLock, lockOrder, v2Lock). Digits are no separators: lock42 is
// not the word lock. Joined to a quantity (lock_stock, lockAmount) it is a
// candidate: such keys are numbers of what is held back.
//
// Candidate: `lock`, `lck`, `mutex` or `semaphore` stands anywhere (locked,
// unlock, spinlock, lock42), or `lease` or `leases` stands alone, since
// release and please are in too many names. `block` and `clock`, and what
// begins with them, are no candidates: they have nothing to do with locks and
// are in the names of millions of keys.

// nameHint is what a key's name alone tells.
type nameHint int

const (
	hintNone nameHint = iota
	hintCandidate
	hintWord
)

// isStop marks the letters at which nameOf stops: one of each pattern, rare in
// names where possible.
var isStop = [256]bool{'k': true, 'K': true, 'x': true, 'X': true, 'p': true, 'P': true, 's': true, 'S': true}

// nameOf reads key once from left to right, stops at rare letters only, and
// does not allocate.
func nameOf(key string) nameHint {
	found := hintNone
	for i := range len(key) {
		c := key[i]
		if !isStop[c] {
			continue
		}
		hint := hintNone
		switch c | 0x20 {
		case 'k':
			switch {
			case foldedBefore(key, i, "loc"):
				hint = lockAt(key, i-3)
			case foldedBefore(key, i, "lc"):
				hint = alone(key, i-2, i+1)
			}
		case 'x':
			if foldedBefore(key, i, "mute") {
				hint = alone(key, i-4, i+1)
			}
		case 'p':
			if foldedBefore(key, i, "sema") && foldedBefore(key, i+5, "hore") {
				hint = hintCandidate
			}
		case 's':
			if foldedBefore(key, i, "lea") && foldedBefore(key, i+2, "e") && leaseAt(key, i-3) {
				hint = hintCandidate
			}
		}
		if hint == hintWord {
			return hintWord
		}
		found = max(found, hint)
	}
	return found
}

// lockAt judges the "lock" that begins at start.
func lockAt(key string, start int) nameHint {
	end := start + len("lock")
	if isEdge(key, start) {
		if !isEdge(key, end) && key[end]|0x20 == 's' {
			end++
		}
		if isEdge(key, end) && !isQuantity(key, end) {
			return hintWord
		}
		return hintCandidate
	}
	if foldedBefore(key, start, "red") && isEdge(key, start-3) && isEdge(key, end) {
		return hintWord
	}
	if before := key[start-1] | 0x20; before == 'b' || before == 'c' {
		return hintNone // block, clock
	}
	return hintCandidate
}

// quantities are what is locked up, held back or frozen in amounts: lock_stock
// and lockAmount are numbers of something, not locks.
var quantities = [...]string{"amount", "balance", "count", "inventory", "money", "num", "number", "qty", "quantity", "score", "stock"}

// isQuantity reports whether the word before i goes on, by _ or a capital letter
// alone, with a quantity that is a word of its own.
func isQuantity(key string, i int) bool {
	if i >= len(key) || key[i] != '_' && !isUpper(key[i]) {
		return false
	}
	if key[i] == '_' {
		i++
	}
	for _, word := range quantities {
		if foldedBefore(key, i+len(word), word) && isEdge(key, i+len(word)) {
			return true
		}
	}
	return false
}

// leaseAt reports whether the "lease" that begins at start stands alone.
func leaseAt(key string, start int) bool {
	end := start + len("lease")
	return isEdge(key, start) && (isEdge(key, end) || key[end]|0x20 == 's' && isEdge(key, end+1))
}

// alone makes key[start:end] a word if it stands alone, else a candidate.
func alone(key string, start, end int) nameHint {
	if isEdge(key, start) && isEdge(key, end) {
		return hintWord
	}
	return hintCandidate
}

// foldedBefore reports whether the bytes of key before end are word, which is
// lower case, in any case. An end outside of key is "no".
func foldedBefore(key string, end int, word string) bool {
	if end < len(word) || end > len(key) {
		return false
	}
	for i := range len(word) {
		if key[end-len(word)+i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// isEdge reports whether a word may begin or end between key[i-1] and key[i].
func isEdge(key string, i int) bool {
	if i <= 0 || i >= len(key) {
		return true
	}
	before, after := key[i-1], key[i]
	if isSeparator(before) || isSeparator(after) {
		return true
	}
	if !isUpper(after) {
		return false
	}
	if isLower(before) || isDigit(before) {
		return true // orderLock, v2Lock
	}
	// DBLock: the last capital of a run begins the next word.
	return isUpper(before) && i+1 < len(key) && isLower(key[i+1])
}

func isSeparator(c byte) bool {
	switch c {
	case ':', '.', '_', '-', '/', '{', '}':
		return true
	}
	return false
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
