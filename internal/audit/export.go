package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// Source is a trail to export: a [store.Store], or an agent through its API.
type Source interface {
	// Ends returns the place behind which the trail begins and that at which it ends.
	Ends(ctx context.Context) (base, head store.Checkpoint, err error)
	// EachEntry calls fn for the entries from seq from on and ends with its first error.
	EachEntry(ctx context.Context, from int64, fn func(locksteward.Entry) error) error
	// AllCheckpoints returns all checkpoints in their order.
	AllCheckpoints(ctx context.Context) ([]store.SignedCheckpoint, error)
	// PlaceAt returns the first entry made at or after a time, 0 if there is none.
	PlaceAt(ctx context.Context, at time.Time) (int64, error)
}

var _ Source = (*store.Store)(nil)

// ExportOptions say which part of a trail is exported: all that there is, unless
// they say otherwise.
type ExportOptions struct {
	// From is the first entry; 0 is the first that there is.
	From int64
	// Since and Until bound the time; Until is not included. What is exported is one
	// piece of the chain all the same: from the first entry that is not older to the
	// last before the first that is not younger.
	Since, Until time.Time
	// Before is an export that this one goes on with: all of it comes first.
	Before io.Reader
	// Progress, if set, is called now and then with how many entries are done and
	// how many there will be.
	Progress func(done, all int64)
}

// Exported is what an export has.
type Exported struct {
	Entries     int64
	First, Last int64 // their numbers; Last is one less than First without any
	Checkpoints int
}

// The lines of an export that are no entries. version is that of the format.
type (
	exportHead struct {
		Version  int       `json:"version"`
		First    int64     `json:"first"`
		PrevHash string    `json:"prev_hash"`
		At       time.Time `json:"at"`
	}
	exportEnd struct {
		Entries int64  `json:"entries"`
		Last    int64  `json:"last"`
		Hash    string `json:"hash"`
		// SHA256 is over all bytes of the file before this line.
		SHA256 string `json:"sha256"`
	}
	headLine struct {
		Export exportHead `json:"export"`
	}
	checkpointLine struct {
		Checkpoint string `json:"checkpoint"`
	}
	endLine struct {
		End exportEnd `json:"end"`
	}
)

const exportVersion = 1

// entryLine is an entry as exports and sinks have it, with the newline.
func entryLine(e locksteward.Entry) ([]byte, error) { return asLine(api.NewExactEntry(e)) }

func asLine(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(locksteward.EscapeJSON(raw), '\n'), nil
}

// exporter writes the lines of an export and checks them on their way: what does
// not verify is not exported.
type exporter struct {
	w     io.Writer
	sum   hash.Hash
	chain store.Chain
	done  Exported
	// checkpointed is the place of the last checkpoint that the file has.
	checkpointed int64
}

func (x *exporter) line(v any) error {
	raw, err := asLine(v)
	if err != nil {
		return err
	}
	return x.raw(raw)
}

func (x *exporter) raw(line []byte) error {
	x.sum.Write(line)
	_, err := x.w.Write(line)
	return err
}

func (x *exporter) checkpoint(c store.SignedCheckpoint) error {
	x.done.Checkpoints++
	return x.line(checkpointLine{Line(c)})
}

func (x *exporter) entry(e locksteward.Entry) error {
	if err := x.chain.Next(e); err != nil {
		return err
	}
	line, err := entryLine(e)
	if err != nil {
		return err
	}
	x.done.Entries++
	x.done.Last = e.Seq
	return x.raw(line)
}

func (x *exporter) end() error {
	return x.line(endLine{exportEnd{
		Entries: x.done.Entries, Last: x.chain.Last.Seq, Hash: x.chain.Last.Hash, SHA256: hex.EncodeToString(x.sum.Sum(nil)),
	}})
}

// errEnough ends the reading of entries.
var errEnough = errors.New("enough")

// Export writes a piece of the trail with its checkpoints to w, one JSON object per
// line: the first says where it begins, the last what came before it. A break of the
// chain is a [store.ChainError], and the export has no last line then.
func Export(ctx context.Context, from Source, w io.Writer, o ExportOptions) (Exported, error) {
	x := &exporter{w: w, sum: sha256.New()}
	base, head, err := from.Ends(ctx)
	if err != nil {
		return x.done, err
	}
	if o.Before != nil {
		if err := x.goOn(o.Before, base, head); err != nil {
			return x.done, err
		}
	} else if err := x.begin(ctx, from, o, base, head); err != nil {
		return x.done, err
	}
	last := head.Seq
	if !o.Until.IsZero() {
		switch next, err := from.PlaceAt(ctx, o.Until); {
		case err != nil:
			return x.done, err
		case next > 0:
			last = min(last, next-1)
		}
	}
	if err := x.pieces(ctx, from, last, o.Progress); err != nil {
		return x.done, err
	}
	return x.done, x.end()
}

// begin writes the first line.
func (x *exporter) begin(ctx context.Context, from Source, o ExportOptions, base, head store.Checkpoint) error {
	first := base.Seq + 1
	if !o.Since.IsZero() {
		place, err := from.PlaceAt(ctx, o.Since)
		if err != nil {
			return err
		}
		if place == 0 {
			place = head.Seq + 1
		}
		first = max(first, place)
	}
	switch {
	case o.From == 0:
	case o.From <= base.Seq:
		return fmt.Errorf("entry %d: %w: the trail begins at entry %d, retention took what was before", o.From, locksteward.ErrInvalid, base.Seq+1)
	case o.From > head.Seq+1:
		return fmt.Errorf("entry %d: %w: the trail ends at entry %d", o.From, locksteward.ErrInvalid, head.Seq)
	default:
		first = max(first, o.From)
	}
	switch first {
	case base.Seq + 1:
		x.chain.Last = base
	case head.Seq + 1:
		x.chain.Last = head
	default:
		err := from.EachEntry(ctx, first, func(e locksteward.Entry) error {
			x.chain.Last = store.Checkpoint{Seq: first - 1, Hash: e.PrevHash}
			return errEnough
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	x.done.First, x.done.Last = first, first-1
	return x.line(headLine{exportHead{Version: exportVersion, First: first, PrevHash: x.chain.Last.Hash, At: time.Now().UTC().Truncate(time.Millisecond)}})
}

// goOn copies an export but for its last line.
func (x *exporter) goOn(before io.Reader, base, head store.Checkpoint) error {
	c := check{keys: nil, each: func(line []byte, last bool) error {
		if last {
			return nil
		}
		return x.raw(line)
	}}
	found, err := c.run(before)
	if err != nil {
		return fmt.Errorf("go on with an export: %w", err)
	}
	x.chain.Last, x.checkpointed = c.chain.Last, c.checkpointed
	x.done = Exported{Entries: found.Entries, First: found.First, Last: found.Last, Checkpoints: found.Checkpoints}
	switch {
	case found.Last < base.Seq:
		return fmt.Errorf("go on with an export: it ends at entry %d, and the trail begins at entry %d: retention took what is between; begin a new file", found.Last, base.Seq+1)
	case found.Last > head.Seq:
		return &store.ChainError{Seq: head.Seq + 1, Problem: fmt.Sprintf("the trail ends here, but the export that was made before has an entry %d", found.Last)}
	case found.Last == head.Seq && x.chain.Last != head, found.Last == base.Seq && x.chain.Last != base:
		return &store.ChainError{Seq: found.Last, Problem: "it is not the entry that the export made before has: the trail was rewritten"}
	}
	return nil
}

// pieces writes the entries up to last, each followed by its checkpoint.
func (x *exporter) pieces(ctx context.Context, from Source, last int64, progress func(done, all int64)) error {
	checkpoints, err := from.AllCheckpoints(ctx)
	if err != nil {
		return err
	}
	behind := x.chain.Last.Seq
	for len(checkpoints) > 0 && (checkpoints[0].Seq < behind || checkpoints[0].Seq <= x.checkpointed) {
		checkpoints = checkpoints[1:]
	}
	follow := func() error {
		for len(checkpoints) > 0 && checkpoints[0].Seq == x.chain.Last.Seq {
			if checkpoints[0].Hash != x.chain.Last.Hash {
				return &store.ChainError{Seq: x.chain.Last.Seq, Problem: "it is not the entry that its checkpoint has: the trail was rewritten"}
			}
			if err := x.checkpoint(checkpoints[0]); err != nil {
				return err
			}
			checkpoints = checkpoints[1:]
		}
		return nil
	}
	if err := follow(); err != nil || behind >= last {
		return err
	}
	err = from.EachEntry(ctx, behind+1, func(e locksteward.Entry) error {
		if e.Seq > last {
			return errEnough
		}
		if err := x.entry(e); err != nil {
			return err
		}
		if progress != nil && e.Seq%pageOfProgress == 0 {
			progress(e.Seq-behind, last-behind)
		}
		return follow()
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case x.chain.Last.Seq < last:
		return &store.ChainError{Seq: x.chain.Last.Seq + 1, Problem: fmt.Sprintf("the trail ends here but %d entries were written", last)}
	}
	return nil
}

// pageOfProgress is how many entries lie between two words about progress.
const pageOfProgress = 5000

// sameLine says whether v is written exactly as line, but for escapes of characters that
// do not print, which exports had not always.
func sameLine(v any, line []byte) bool {
	raw, err := asLine(v)
	return err == nil && bytes.Equal(raw, locksteward.EscapeJSON(line))
}
