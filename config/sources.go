package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultSRVEvery and defaultSRVKeep are what 0s means.
	defaultSRVEvery = 30 * time.Second
	defaultSRVKeep  = 10 * time.Minute
)

// Sources are where targets stand besides `targets:`. They are followed while the
// agent runs: see [Discovery].
type Sources struct {
	// Files are paths or globs of YAML files with a `targets:` of their own, relative
	// to the configuration file.
	Files []string `yaml:"files"`
	// SRV are names of which the DNS says on which hosts and ports Redis is.
	SRV []SRV `yaml:"srv"`
	// DNS is host:port of the server that is asked; empty: the system's.
	DNS string `yaml:"dns"`
}

// SRV makes targets of the SRV records of one name (RFC 2782). Priority and weight
// mean nothing here: what is there is watched.
type SRV struct {
	// Record is the name, such as _redis._tcp.orders.example.org.
	Record string `yaml:"record"`
	// Every is how often it is asked for; 0s is 30s.
	Every time.Duration `yaml:"every"`
	// Keep is for how long a target is watched on that the answers name no longer;
	// 0s is 10m. No answer, or one without any record, takes nothing away.
	Keep time.Duration `yaml:"keep"`
	// Target is what is made of each record: {host}, {short} (the host up to its first
	// dot) and {port} stand for the record's in name and redis. With {addresses} in
	// redis all records together are one target: the first nodes of a Cluster, or
	// Sentinels.
	Target Target `yaml:"target"`
}

// Endpoint is what an SRV record names.
type Endpoint struct {
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

func (e Endpoint) String() string { return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))) }

// isZero says that all targets stand in the list.
func (s Sources) isZero() bool { return len(s.Files) == 0 && len(s.SRV) == 0 }

var recordName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*\.?)+$`)

func (s Sources) validate() error {
	var errs []error
	for i, pattern := range s.Files {
		if _, err := filepath.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, fmt.Errorf("files[%d]: got %q, write a path or a glob such as targets.d/*.yaml", i, pattern))
		}
	}
	for i, one := range s.SRV {
		errs = append(errs, prefixed(fmt.Sprintf("srv[%d]", i), one.validate()))
	}
	if s.DNS != "" {
		host, port, err := net.SplitHostPort(s.DNS)
		if n, errPort := strconv.ParseUint(port, 10, 16); err != nil || errPort != nil || n == 0 || host == "" {
			errs = append(errs, fmt.Errorf("dns: got %q, write host:port such as 127.0.0.1:8600, or leave it empty for the system's", s.DNS))
		}
	}
	return errors.Join(errs...)
}

func (s SRV) validate() error {
	var errs []error
	if len(s.Record) > 253 || !recordName.MatchString(s.Record) {
		errs = append(errs, fmt.Errorf("record: got %q, write a name such as _redis._tcp.orders.example.org", s.Record))
	}
	if s.Every != 0 && s.Every < time.Second {
		errs = append(errs, fmt.Errorf("every: got %s, write at least 1s", s.Every))
	}
	if s.Keep < 0 {
		errs = append(errs, fmt.Errorf("keep: got %s, write a duration of 0s or more", s.Keep))
	}
	name := s.Target.Name
	each := strings.Contains(name, "{host}") || strings.Contains(name, "{short}") || strings.Contains(name, "{port}")
	switch {
	case s.together() && (each || strings.Contains(s.Target.URL, "{host}") || strings.Contains(s.Target.URL, "{short}") || strings.Contains(s.Target.URL, "{port}")):
		errs = append(errs, errors.New("target: {addresses} makes one target of all records, and {host}, {short} or {port} one of each; keep one of the two"))
	case !s.together() && !strings.Contains(s.Target.URL, "{host}"):
		errs = append(errs, fmt.Errorf("target.url: got %q, write where a record leads, such as redis://{host}:{port}/0 for a target of each, or redis+cluster://{addresses}/0 for one of all", s.Target.URL))
	case !s.together() && !each:
		errs = append(errs, fmt.Errorf("target.name: got %q, which would be the name of each; write {host}, {short} or {port} in it", name))
	default:
		// A record that might be.
		errs = append(errs, s.target([]Endpoint{{Host: "redis-0.example.org", Port: 6379}}).validate("target"))
	}
	return errors.Join(errs...)
}

// together says that all records are one target.
func (s SRV) together() bool { return strings.Contains(s.Target.URL, "{addresses}") }

// target is what is made of one record, or of all together.
func (s SRV) target(records []Endpoint) Target {
	addresses := make([]string, 0, len(records))
	for _, r := range records {
		addresses = append(addresses, r.String())
	}
	first := records[0]
	short, _, _ := strings.Cut(first.Host, ".")
	fill := strings.NewReplacer("{host}", first.Host, "{short}", short, "{port}", strconv.Itoa(int(first.Port)), "{addresses}", strings.Join(addresses, ","))
	t := s.Target
	t.Name, t.URL, t.source = fill.Replace(t.Name), fill.Replace(t.URL), "srv "+s.Record
	return t
}

// expand makes targets of records, which are sorted and at least one. What cannot be
// a target is left out and reported.
func (s SRV) expand(records []Endpoint) (out []Target, problems []error) {
	if s.together() {
		return []Target{s.target(records)}, nil
	}
	by := map[string]Endpoint{}
	for _, r := range records {
		t := s.target([]Endpoint{r})
		if err := t.validate("target"); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", r, err))
			continue
		}
		if first, twice := by[t.Name]; twice {
			problems = append(problems, fmt.Errorf("%s: target.name: got %q, which %s has already; write {host} and {port} in it", r, t.Name, first))
			continue
		}
		by[t.Name] = r
		out = append(out, t)
	}
	return out, problems
}
