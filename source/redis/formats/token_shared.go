package formats

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/locksteward/locksteward"
)

// sharedShape recognises tokens that are constants or name a host, process or
// thread: others know or can guess them, so anybody may release the lock, by
// mistake above all.
func sharedShape(_, text string) (tokenShape, bool) {
	kind, holder := sharedKind(text)
	if kind == "" {
		return tokenShape{}, false
	}
	return tokenShape{kind: kind, origin: originShared, confidence: locksteward.ConfidenceLow, holder: holder}, true
}

// maxShared is the longest text that is taken for a name; maxNumber the most
// digits that are taken for a constant or a thread id: longer ones may be drawn
// from a sequence, and be fresh.
const (
	maxShared = 64
	maxNumber = 9
)

func sharedKind(text string) (string, locksteward.Holder) {
	var nobody locksteward.Holder
	number := strings.TrimPrefix(text, "-")
	switch {
	case text == "":
		return "an empty value", nobody
	case isDigits(number) && len(number) == 1:
		return "a one-digit number", nobody
	case isDigits(number) && len(number) <= maxNumber:
		return "a short number", nobody
	case isConstantWord(text):
		return "a constant word", nobody
	case len(text) > 1 && strings.Trim(text, text[:1]) == "":
		return "one character repeated", nobody
	case isUUID(text) && strings.Trim(text, "0-") == "":
		return "the zero UUID", nobody
	case len(text) > maxShared:
		return "", nobody
	case isAddress(text):
		return "a network address", nobody
	}
	if holder, ok := hostAndPID(text); ok {
		return "a host name with a process id", holder
	}
	if isWord(text) {
		return "a short word", nobody
	}
	if isName(text) {
		return "a host, worker or thread name", nobody
	}
	return "", nobody
}

func isConstantWord(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "ok", "y", "n", "t", "f", "x",
		"lock", "locked", "locking", "mutex", "held", "busy", "taken", "owned", "running", "processing", "working", "active", "in_progress",
		"null", "nil", "none", "undefined", "value", "default", "dummy", "placeholder", "exists", "[]", "{}", `\n`:
		return true
	}
	return false
}

// isAddress accepts an IP address with or without a port, and localhost.
func isAddress(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	if _, err := netip.ParseAddrPort(text); err == nil {
		return true
	}
	host, _, _ := strings.Cut(text, ":")
	return host == "localhost"
}

// hostAndPID splits <host>:<pid> and Java's <pid>@<host>. An IP address or
// localhost before the colon is not taken for a host: what follows it is more
// likely a port.
func hostAndPID(text string) (locksteward.Holder, bool) {
	host, pid, ok := strings.Cut(text, ":")
	if !ok {
		pid, host, ok = strings.Cut(text, "@")
	}
	if !ok || !isDigits(pid) || len(pid) > 7 || !isHostName(host) || isAddress(host) {
		return locksteward.Holder{}, false
	}
	n, err := strconv.Atoi(pid)
	if err != nil || n == 0 {
		return locksteward.Holder{}, false
	}
	return locksteward.Holder{Host: host, PID: n}, true
}

// isHostName accepts labels of letters, digits, - and _, between dots, with at
// least one letter.
func isHostName(text string) bool {
	letter := false
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 || !isAlnum(label[0]) || !isAlnum(label[len(label)-1]) {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if !isAlnum(c) && c != '-' && c != '_' {
				return false
			}
			letter = letter || isLetter(c)
		}
	}
	return letter
}

// isWord accepts letters of any script, in words that a person would write:
// long runs without an end and capitals at every third letter are random text.
func isWord(text string) bool {
	changes := varietyOf(text).changes
	if len(text) > 32 || changes == 0 && len(text) > 22 {
		return false
	}
	for _, r := range text {
		if !unicode.IsLetter(r) {
			return false
		}
	}
	return changes <= max(1, len(text)/5)
}

// isName accepts words and numbers between separators, as in the names of
// hosts, pods, workers and threads: worker-7, order-6d4cf56db6-x2x9z,
// http-nio-8080-exec-3, main#1.
func isName(text string) bool {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".-_/:@#| ", r) })
	named := false
	for _, part := range parts {
		switch {
		case isDigits(part):
			if len(part) > maxNumber {
				return false
			}
		case isWord(part):
			named = true
		case isNumbered(part):
			named = true
		case len(parts) > 1 && isPodSuffix(part):
		default:
			return false
		}
	}
	return named
}

// isNumbered accepts a word with digits at one end: worker7, 2ndshard.
func isNumbered(part string) bool {
	head := strings.TrimRight(part, "0123456789")
	tail := strings.TrimLeft(part, "0123456789")
	switch {
	case head != part:
		return len(part)-len(head) <= maxNumber && isWord(head) && len(head) <= 20
	case tail != part:
		return len(part)-len(tail) <= maxNumber && isWord(tail) && len(tail) <= 20
	default:
		return false
	}
}

// isPodSuffix accepts what Kubernetes puts behind a pod's or replica set's
// name: five to ten characters of an alphabet without vowels.
func isPodSuffix(part string) bool {
	return len(part) >= 5 && len(part) <= 10 && every(part, func(c byte) bool {
		return strings.IndexByte("bcdfghjklmnpqrstvwxz2456789", c) >= 0
	})
}
