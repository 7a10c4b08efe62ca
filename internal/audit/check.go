package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// Checked is what the verification of an export found.
type Checked struct {
	Entries     int64
	First, Last int64
	Head        store.Checkpoint
	// Base is the place behind which the export begins.
	Base store.Checkpoint
	// Made is when the export was begun, by the clock of who made it.
	Made        time.Time
	Checkpoints int
	Signed      int // of them with a good signature by a key that counts
	// Anchored is how many anchors lie within the export, and are on its chain.
	Anchored int
}

// CheckOptions say against what an export is verified.
type CheckOptions struct {
	Anchors []store.Checkpoint
	// Keys are those whose signatures are checked.
	Keys Keyring
	// Progress, if set, is called now and then with how many entries are done.
	Progress func(done int64)
}

// CheckExport verifies an export without a store: that it is as it was written, that
// its entries are a chain, and that its checkpoints and the anchors are on it. A
// break of the chain is a [store.ChainError]; every other error names its line. An
// anchor behind the end is a break: something was cut off.
func CheckExport(r io.Reader, o CheckOptions) (Checked, error) {
	c := check{keys: o.Keys, anchors: map[int64]string{}, progress: o.Progress}
	for _, a := range o.Anchors {
		if hash, twice := c.anchors[a.Seq]; twice && hash != a.Hash {
			return Checked{}, &store.ChainError{Seq: a.Seq, Problem: "the anchors have two different entries with this number: they belong to two trails"}
		}
		c.anchors[a.Seq] = a.Hash
	}
	found, err := c.run(r)
	if err != nil {
		return found, err
	}
	for seq := range c.anchors {
		if seq > found.Last {
			return found, &store.ChainError{Seq: found.Last + 1, Problem: fmt.Sprintf("the export ends here, but the anchor has an entry %d", seq)}
		}
	}
	return found, nil
}

// check is one verification.
type check struct {
	keys     Keyring
	anchors  map[int64]string
	progress func(done int64)
	// each, if set, gets every line that was found good.
	each func(line []byte, last bool) error

	sum   hash.Hash
	chain store.Chain
	found Checked
	line  int
	ended bool
	// checkpointed is the place of the last checkpoint.
	checkpointed int64
}

func (c *check) run(r io.Reader) (Checked, error) {
	c.sum = sha256.New()
	plain, err := uncompressed(r)
	if err == nil {
		err = eachLine(plain, c.next)
	}
	c.found.Head = c.chain.Last
	switch {
	case err != nil:
		if _, broken := errors.AsType[*store.ChainError](err); broken {
			return c.found, err
		}
		return c.found, fmt.Errorf("line %d: %w", max(1, c.line), err)
	case c.line == 0:
		return c.found, errors.New("the export is empty: it has not even a first line")
	case !c.ended:
		return c.found, &store.ChainError{Seq: c.chain.Last.Seq + 1, Problem: "the export has no last line: it was cut off"}
	}
	return c.found, nil
}

// errForm is a line that no export has in this form.
var errForm = errors.New("it is not as an export writes it: it was changed, or a newer version wrote it")

// next checks one line.
func (c *check) next(line []byte) error {
	c.line++
	var err error
	switch {
	case c.ended:
		return errors.New("more follows after the last line")
	case c.line == 1:
		err = c.begin(line)
	case bytes.HasPrefix(line, []byte(`{"checkpoint":`)):
		err = c.checkpoint(line)
	case bytes.HasPrefix(line, []byte(`{"end":`)):
		err = c.end(line)
	default:
		err = c.entry(line)
	}
	if err != nil {
		return err
	}
	c.sum.Write(line)
	if c.each != nil {
		return c.each(line, c.ended)
	}
	return nil
}

func (c *check) begin(line []byte) error {
	var h headLine
	if err := json.Unmarshal(line, &h); err != nil || h.Export.Version == 0 {
		return errors.New("it is no export of an audit trail: 'locksteward audit export' makes one")
	}
	if h.Export.Version > exportVersion {
		return fmt.Errorf("the export is of version %d, and this program reads %d; use the locksteward that wrote it", h.Export.Version, exportVersion)
	}
	if !sameLine(h, line) || h.Export.First < 1 || h.Export.First == 1 && h.Export.PrevHash != "" {
		return errForm
	}
	c.chain.Last = store.Checkpoint{Seq: h.Export.First - 1, Hash: h.Export.PrevHash}
	c.found.First, c.found.Last, c.found.Base, c.found.Made = h.Export.First, h.Export.First-1, c.chain.Last, h.Export.At
	return c.anchored()
}

// anchored compares the place that was reached with the anchor of that place.
func (c *check) anchored() error {
	hash, ok := c.anchors[c.chain.Last.Seq]
	if !ok {
		return nil
	}
	if hash != c.chain.Last.Hash {
		return &store.ChainError{Seq: c.chain.Last.Seq, Problem: "it is not the entry that the anchor has: the trail was rewritten"}
	}
	c.found.Anchored++
	return nil
}

func (c *check) entry(line []byte) error {
	var e api.Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	entry, err := e.Entry()
	if err != nil {
		return err
	}
	if err := c.chain.Next(entry); err != nil {
		return err
	}
	// What the hash does not cover, the ways to write the same, is covered here.
	if !sameLine(api.NewExactEntry(entry), line) {
		return errForm
	}
	c.found.Entries++
	c.found.Last = entry.Seq
	if c.progress != nil && c.found.Entries%pageOfProgress == 0 {
		c.progress(c.found.Entries)
	}
	return c.anchored()
}

func (c *check) checkpoint(line []byte) error {
	var l checkpointLine
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	if !sameLine(l, line) {
		return errForm
	}
	at, err := ParseLine(l.Checkpoint)
	if err != nil {
		return err
	}
	if at.Checkpoint != c.chain.Last {
		return &store.ChainError{Seq: at.Seq, Problem: "it is not the entry that its checkpoint has: the trail was rewritten"}
	}
	good, err := c.keys.Check(at)
	if err != nil {
		return err
	}
	c.found.Checkpoints++
	c.checkpointed = at.Seq
	if good {
		c.found.Signed++
	}
	return nil
}

func (c *check) end(line []byte) error {
	var l endLine
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	switch want := hex.EncodeToString(c.sum.Sum(nil)); {
	case !sameLine(l, line):
		return errForm
	case l.End.Last != c.chain.Last.Seq || l.End.Entries != c.found.Entries || l.End.Hash != c.chain.Last.Hash:
		return &store.ChainError{Seq: c.chain.Last.Seq + 1, Problem: fmt.Sprintf("the export ends here but had entries up to %d", l.End.Last)}
	case l.End.SHA256 != want:
		return errors.New("the export is not the one that this line was written for: something in it was changed that is not in the chain")
	}
	c.ended = true
	return nil
}

// uncompressed reads a file as it is, or what gzip made of it.
func uncompressed(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if magic, err := in.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return in, nil // an error comes again with the first read
	}
	return gzip.NewReader(in)
}
