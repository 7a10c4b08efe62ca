package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// ActionImport is what the trail calls the import of a file.
const ActionImport = "audit.import"

const (
	// maxImported is how many lines one import takes.
	maxImported = 5000
	// maxImportedLine bounds one of them.
	maxImportedLine = 64 << 10
	// maxNamed is how many problems are named.
	maxNamed = 20
	// maxAhead is how far in the future a line may be: clocks differ.
	maxAhead = time.Hour
)

// importable are the actions of `locksteward unlock`; package internal/unlock
// writes them.
var importable = map[string]bool{"unlock.intent": true, "unlock.outcome": true}

// imported is the detail of an entry that was imported: what was done in the words
// of the file, which nobody vouched for but who imported it.
type imported struct {
	By     string          `json:"imported_by"`
	At     time.Time       `json:"at"` // original
	Actor  string          `json:"actor"`
	File   string          `json:"file,omitempty"`
	Line   int             `json:"line"`
	SHA256 string          `json:"sha256"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// ParseImport reads lines of a file that `locksteward unlock` wrote into entries of
// the trail, in the name of who imports them. The error names every line that is
// wrong and wraps locksteward.ErrInvalid.
func ParseImport(in api.AuditImport, who string, now time.Time) ([]store.ImportLine, error) {
	if len(in.Lines) > maxImported {
		return nil, fmt.Errorf("lines: %w: at most %d at once, got %d", locksteward.ErrInvalid, maxImported, len(in.Lines))
	}
	var out []store.ImportLine
	var errs []error
	for i, text := range in.Lines {
		n := max(1, in.FirstLine) + i
		if strings.TrimSpace(text) == "" {
			continue
		}
		line, err := parseLine(in, text, n, who, now)
		if err != nil {
			if len(errs) == maxNamed {
				errs = append(errs, errors.New("and more"))
				break
			}
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		out = append(out, line)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w: nothing is imported:\n%w", locksteward.ErrInvalid, errors.Join(errs...))
	}
	return out, nil
}

func parseLine(in api.AuditImport, text string, n int, who string, now time.Time) (store.ImportLine, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxImportedLine {
		return store.ImportLine{}, fmt.Errorf("is longer than %d bytes", maxImportedLine)
	}
	e, err := entryOfFile(text)
	if err != nil {
		return store.ImportLine{}, err
	}
	switch {
	case !importable[e.Action]:
		return store.ImportLine{}, fmt.Errorf("action: got %q, and a file of `locksteward unlock` has unlock.intent and unlock.outcome", e.Action)
	case e.Seq != 0 || e.Hash != "" || e.PrevHash != "":
		return store.ImportLine{}, errors.New("it is of a trail already: an export is not imported")
	case e.At.IsZero():
		return store.ImportLine{}, errors.New("at: is missing: when was it done?")
	case e.At.After(now.Add(maxAhead)):
		return store.ImportLine{}, fmt.Errorf("at: %s is in the future", e.At.UTC().Format(time.RFC3339))
	case e.Actor == "" || e.Subject == "" || e.Reason == "":
		return store.ImportLine{}, errors.New("actor, subject or reason is missing")
	}
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	detail, err := json.Marshal(imported{
		By: who, At: e.At.UTC(), Actor: e.Actor, File: in.File, Line: n, SHA256: digest, Detail: e.Detail,
	})
	if err != nil {
		return store.ImportLine{}, err
	}
	if in.Target != "" {
		e.Target = in.Target
	}
	// Lists show the actor, so the mark is there.
	e.Actor, e.At, e.Detail = fmt.Sprintf("%s (imported by %s)", e.Actor, who), now, detail
	return store.ImportLine{Digest: digest, Entry: e}, nil
}

// entryOfFile reads one line strictly.
func entryOfFile(text string) (locksteward.Entry, error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	var e api.Entry
	if err := dec.Decode(&e); err != nil {
		return locksteward.Entry{}, fmt.Errorf("cannot be read: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return locksteward.Entry{}, errors.New("cannot be read: more follows after the object")
	}
	return e.Entry()
}

// importEntry is the trail's word about an import.
func importEntry(in api.AuditImport, who string, now time.Time, fresh, known int) locksteward.Entry {
	detail, _ := json.Marshal(map[string]int{"imported": fresh, "known": known}) // numbers cannot fail
	return locksteward.Entry{At: now, Actor: who, Action: ActionImport, Subject: in.File, Outcome: "done", Detail: detail}
}
