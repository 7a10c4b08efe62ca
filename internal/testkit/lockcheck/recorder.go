package lockcheck

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Recorder collects a [History]. With a writer it passes on each record as a
// line of JSON, so that a process that is killed has recorded all it knew. It is safe
// for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	history History
	at      map[string]int // place of a hold, by id
	out     *json.Encoder
	err     error
}

// record is one line between processes; one field is set.
type record struct {
	Hold     *Hold    `json:"hold,omitempty"`
	Attempt  *Attempt `json:"attempt,omitempty"`
	Fenced   *Write   `json:"fenced,omitempty"`
	Unfenced *Write   `json:"unfenced,omitempty"`
}

// NewRecorder returns an empty recorder that tells out, if that is not nil.
func NewRecorder(out io.Writer) *Recorder {
	r := &Recorder{at: map[string]int{}}
	if out != nil {
		r.out = json.NewEncoder(out)
	}
	return r
}

// Hold records h, in place of what was recorded of the same acquisition before.
func (r *Recorder) Hold(h Hold) { r.add(record{Hold: &h}) }

// Attempt records an acquire that failed.
func (r *Recorder) Attempt(a Attempt) { r.add(record{Attempt: &a}) }

// Wrote records one write to both stores.
func (r *Recorder) Wrote(fenced, unfenced Write) {
	r.add(record{Fenced: &fenced, Unfenced: &unfenced})
}

// Killed records that a process died without reporting its last acquires.
func (r *Recorder) Killed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Killed = true
}

func (r *Recorder) add(one record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := one.Hold; h != nil {
		if i, known := r.at[h.ID]; known {
			r.history.Holds[i] = *h
		} else {
			r.at[h.ID] = len(r.history.Holds)
			r.history.Holds = append(r.history.Holds, *h)
		}
	}
	if one.Attempt != nil {
		r.history.Attempts = append(r.history.Attempts, *one.Attempt)
	}
	if one.Fenced != nil {
		r.history.Fenced = append(r.history.Fenced, *one.Fenced)
	}
	if one.Unfenced != nil {
		r.history.Unfenced = append(r.history.Unfenced, *one.Unfenced)
	}
	if r.out != nil && r.err == nil {
		r.err = r.out.Encode(one)
	}
}

// Err returns why the writer did not take a record.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Replay adds the records that another recorder has written to in, until its
// end. Lines that do not begin with a brace are given to other, if that is not
// nil; a line that was cut off by the end of its process counts as not written.
func (r *Recorder) Replay(in io.Reader, other func(line string)) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read records: %w", err)
		case line[0] != '{':
			if other != nil {
				other(string(line[:len(line)-1]))
			}
			continue
		}
		var one record
		if err := json.Unmarshal(line, &one); err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		r.add(one)
	}
}

// History returns a copy of what was recorded so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history
	h.Holds = append([]Hold(nil), h.Holds...)
	h.Attempts = append([]Attempt(nil), h.Attempts...)
	h.Fenced = append([]Write(nil), h.Fenced...)
	h.Unfenced = append([]Write(nil), h.Unfenced...)
	return h
}
