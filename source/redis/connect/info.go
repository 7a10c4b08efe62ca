package connect

import "strings"

// ParseInfo returns the fields of a server's answer to INFO, by name.
func ParseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if ok && !strings.HasPrefix(name, "#") {
			fields[name] = value
		}
	}
	return fields
}
