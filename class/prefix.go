package class

// LiteralPrefix returns what every key that pattern matches begins with, exact
// bytes; "" for a pattern that begins with a wildcard or is malformed.
func LiteralPrefix(pattern string) string {
	g, err := parseGlob(pattern)
	if err != nil {
		return ""
	}
	return g.prefix
}
