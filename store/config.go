package store

import (
	"fmt"
	"strings"
)

// DefaultDSN is where the agent keeps its store unless it is told otherwise.
const DefaultDSN = "sqlite:data/locksteward.db"

// memoryPath is SQLite's name for a database without a file.
const memoryPath = ":memory:"

// Config is `store:` in the configuration.
type Config struct {
	// DSN is "sqlite:PATH"; PATH is relative to the working directory. Empty is
	// DefaultDSN.
	DSN string `yaml:"dsn"`
}

// DefaultConfig returns the configuration of an agent that was told nothing.
func DefaultConfig() Config { return Config{DSN: DefaultDSN} }

// Validate reports what is wrong with c, with the key and what to write.
func (c Config) Validate() error {
	if c.DSN == "" {
		return nil
	}
	if _, err := parseDSN(c.DSN); err != nil {
		return fmt.Errorf("dsn: %w", err)
	}
	return nil
}

// parseDSN returns the path in a DSN. Its errors never show the DSN: one of
// another database carries a password.
func parseDSN(dsn string) (path string, err error) {
	scheme, path, found := strings.Cut(dsn, ":")
	switch strings.ToLower(scheme) {
	case "sqlite":
	case "postgres", "postgresql":
		return "", fmt.Errorf("PostgreSQL is not in this version; use sqlite: (for example %s)", DefaultDSN)
	default:
		return "", fmt.Errorf("must be sqlite:PATH (for example %s)", DefaultDSN)
	}
	if !found || path == "" {
		return "", fmt.Errorf("sqlite: needs a path behind it (for example %s)", DefaultDSN)
	}
	if strings.HasPrefix(path, "//") {
		return "", fmt.Errorf("write sqlite:PATH without slashes in front of the path (for example %s, or sqlite:/var/lib/locksteward/locksteward.db)", DefaultDSN)
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("the path holds a NUL byte; write a path like %s", DefaultDSN)
	}
	return path, nil
}
