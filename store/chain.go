package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/locksteward/locksteward"
)

// Checkpoint is one place in the audit chain. A copy outside the store is an anchor: no
// entry before it can be changed undetected.
type Checkpoint struct {
	Seq  int64  // 0: before the first entry
	Hash string // of that entry; "" before the first
}

// ChainError is a broken audit trail.
type ChainError struct {
	Seq     int64 // the first wrong entry
	Problem string
}

// Error returns the sentence.
func (e *ChainError) Error() string {
	return fmt.Sprintf("audit trail is broken at entry %d: %s; compare with a backup or an export to see what was there", e.Seq, e.Problem)
}

// Chain checks entries one after the other, from a store or an export. Its zero value
// begins before the first entry; with Last set it continues that entry. It is not safe for
// concurrent use.
type Chain struct {
	// Last is the last entry that was checked.
	Last Checkpoint

	buf []byte
}

// Next checks that e continues the chain unchanged. If not, it returns a [ChainError] and
// leaves c as it is.
func (c *Chain) Next(e locksteward.Entry) error {
	want := c.Last.Seq + 1
	switch {
	case e.Seq != want:
		return &ChainError{Seq: want, Problem: fmt.Sprintf("it is missing, the next is %d", e.Seq)}
	case e.PrevHash != c.Last.Hash:
		return &ChainError{Seq: want, Problem: "it does not continue the entry before it"}
	}
	c.buf = appendHashed(c.buf[:0], e)
	if sum := sha256.Sum256(c.buf); hex.EncodeToString(sum[:]) != e.Hash {
		return &ChainError{Seq: want, Problem: "it was changed after it was written"}
	}
	c.Last = Checkpoint{Seq: e.Seq, Hash: e.Hash}
	return nil
}

// HashEntry returns the hash of e: SHA-256 in hex over its other fields and
// PrevHash, each preceded by its length in bytes.
func HashEntry(e locksteward.Entry) string {
	sum := sha256.Sum256(appendHashed(nil, e))
	return hex.EncodeToString(sum[:])
}

// appendHashed appends the bytes that the hash of e covers.
func appendHashed(b []byte, e locksteward.Entry) []byte {
	b = append(b, "locksteward-entry-1 "...)
	b = appendNumber(b, e.Seq)
	b = appendNumber(b, micros(e.At))
	for _, part := range [...]string{e.Actor, e.Action, e.Target, e.Key, e.Subject, e.Reason, e.Outcome} {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(b, ':')
		b = append(b, part...)
	}
	b = strconv.AppendInt(b, int64(len(e.Detail)), 10)
	b = append(b, ':')
	b = append(b, e.Detail...)
	b = strconv.AppendInt(b, int64(len(e.PrevHash)), 10)
	b = append(b, ':')
	return append(b, e.PrevHash...)
}

// appendNumber appends n in decimal, preceded by its length.
func appendNumber(b []byte, n int64) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	b = strconv.AppendInt(b, int64(len(text)), 10)
	b = append(b, ':')
	return append(b, text...)
}
