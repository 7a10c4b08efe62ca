package locksteward

import (
	"embed"
	"strings"
)

//go:embed docs/rules
var rulePages embed.FS

// RulePage returns the page of docs/rules at path ("docs/rules/ttl/none.md") for
// reading in a terminal: without the marks of its generated parts.
func RulePage(path string) (string, bool) {
	raw, err := rulePages.ReadFile(path)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "<!--") {
			b.WriteString(line)
		}
	}
	return b.String(), true
}
