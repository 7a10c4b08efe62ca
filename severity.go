package locksteward

import (
	"encoding"
	"fmt"
	"strings"
)

// Severity says how soon a person has to act. Higher is more severe, so
// severities compare with < and >.
type Severity int

const (
	// SeverityInfo is reported and counted; nobody is notified.
	SeverityInfo Severity = iota + 1
	// SeverityWarning wants a person today.
	SeverityWarning
	// SeverityCritical wants a person now.
	SeverityCritical
)

var severityNames = map[Severity]string{
	SeverityInfo:     "info",
	SeverityWarning:  "warning",
	SeverityCritical: "critical",
}

// String returns "info", "warning" or "critical".
func (s Severity) String() string {
	if name, ok := severityNames[s]; ok {
		return name
	}
	return fmt.Sprintf("severity(%d)", int(s))
}

// ParseSeverity is the inverse of [Severity.String].
func ParseSeverity(text string) (Severity, error) {
	for s, name := range severityNames {
		if strings.EqualFold(name, strings.TrimSpace(text)) {
			return s, nil
		}
	}
	return 0, fmt.Errorf("severity %q: must be info, warning or critical", text)
}

// MarshalText encodes the severity as its name; the zero value is an error.
func (s Severity) MarshalText() ([]byte, error) {
	name, ok := severityNames[s]
	if !ok {
		return nil, fmt.Errorf("severity %d has no name", int(s))
	}
	return []byte(name), nil
}

// UnmarshalText decodes what [Severity.MarshalText] wrote.
func (s *Severity) UnmarshalText(text []byte) error {
	parsed, err := ParseSeverity(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

var (
	_ encoding.TextMarshaler   = Severity(0)
	_ encoding.TextUnmarshaler = (*Severity)(nil)
)
