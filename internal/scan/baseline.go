package scan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

var fingerprint = regexp.MustCompile(`^[0-9a-f]{32}$`)

// ParseBaseline reads a baseline file. Its error wraps locksteward.ErrInvalid.
func ParseBaseline(raw []byte) (api.Baseline, error) {
	var b api.Baseline
	bad := func(format string, args ...any) (api.Baseline, error) {
		return api.Baseline{}, fmt.Errorf("%w: %w; write it anew with --update-baseline", locksteward.ErrInvalid, fmt.Errorf(format, args...))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&b); err != nil {
		return bad("read JSON: %w", err)
	}
	if b.Version != api.BaselineVersion {
		return bad("version: got %d, and this program knows %d", b.Version, api.BaselineVersion)
	}
	seen := map[string]int{}
	for i, f := range b.Findings {
		if !fingerprint.MatchString(f.Fingerprint) {
			return bad("findings[%d].fingerprint: got %q, want 32 hex characters", i, f.Fingerprint)
		}
		if first, twice := seen[f.Fingerprint]; twice {
			return bad("findings[%d].fingerprint: got %q, which findings[%d] has already", i, f.Fingerprint, first)
		}
		seen[f.Fingerprint] = i
	}
	return b, nil
}

// Compare marks the findings of a scan as known or new, and lists what the scan
// did not find any more; what an incomplete scan did not find may be there.
func Compare(s *api.Scan, b api.Baseline) {
	known := map[string]bool{}
	for _, f := range b.Findings {
		known[f.Fingerprint] = true
	}
	found := map[string]bool{}
	for i := range s.Findings {
		f := &s.Findings[i]
		found[f.Fingerprint] = true
		f.Baseline = api.BaselineNew
		if known[f.Fingerprint] {
			f.Baseline = api.BaselineKnown
		}
	}
	s.BaselineGone = nil
	if !s.Complete {
		return
	}
	for _, f := range b.Findings {
		if !found[f.Fingerprint] {
			s.BaselineGone = append(s.BaselineGone, f)
		}
	}
}

// Update returns the baseline that accepts what fires in a scan, as of today. The
// dates of what was accepted before stay, and so does what an incomplete scan did
// not find, or sees only as pending.
func Update(s api.Scan, old api.Baseline, today time.Time) api.Baseline {
	out := api.Baseline{Version: api.BaselineVersion, Findings: []api.BaselineFinding{}}
	before := map[string]api.BaselineFinding{}
	for _, f := range old.Findings {
		before[f.Fingerprint] = f
	}
	for _, f := range s.Findings {
		was, known := before[f.Fingerprint]
		if !known && f.Status != string(locksteward.StatusFiring) {
			continue
		}
		delete(before, f.Fingerprint)
		out.Findings = append(out.Findings, api.BaselineFinding{
			Fingerprint: f.Fingerprint, Rule: f.Rule, Severity: f.Severity, DB: f.DB, Key: f.Key, Class: f.Class,
			Accepted: cmp.Or(was.Accepted, today.UTC().Format(time.DateOnly)),
		})
	}
	if !s.Complete {
		for _, f := range old.Findings {
			if _, missed := before[f.Fingerprint]; missed {
				out.Findings = append(out.Findings, f)
			}
		}
	}
	slices.SortFunc(out.Findings, func(a, b api.BaselineFinding) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), cmp.Compare(a.DB, b.DB), strings.Compare(a.Key.Key, b.Key.Key),
			strings.Compare(a.Class, b.Class), strings.Compare(a.Fingerprint, b.Fingerprint))
	})
	return out
}
