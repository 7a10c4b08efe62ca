package unlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// Actions of the audit file.
const (
	actionIntent  = "unlock.intent"
	actionOutcome = "unlock.outcome"
)

// auditFile is a file of one JSON object per line, each an [api.Entry] without
// hashes: the chain is the agent's that imports it.
type auditFile struct{ path string }

// append writes one line and waits until the disk has it.
func (f auditFile) append(e locksteward.Entry) (err error) {
	e.At = time.Now()
	line, err := json.Marshal(api.NewEntry(e))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return f.explain(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(append(locksteward.EscapeJSON(line), '\n')); err != nil {
		return f.explain(err)
	}
	if err := file.Sync(); err != nil {
		return f.explain(err)
	}
	return nil
}

func (f auditFile) explain(err error) error {
	return fmt.Errorf("write audit file: %w; name another one with --audit-file", err)
}
