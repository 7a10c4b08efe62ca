package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// A checkpoint is one line of six words:
//
//	locksteward-checkpoint-1 SEQ HASH TIME KEY SIGNATURE
//
// The signature is over all before the space in front of it. Without a key the last
// two are "-".
const (
	checkpointWord = "locksteward-checkpoint-1"
	checkpointTime = "2006-01-02T15:04:05.000000Z"
	nobody         = "-"
)

// Sign puts the key's name to a place of the chain; a nil key puts nobody's.
func Sign(k *Key, place store.Checkpoint, at time.Time) store.SignedCheckpoint {
	c := store.SignedCheckpoint{Checkpoint: place, At: at.UTC().Truncate(time.Microsecond)}
	if k != nil {
		c.KeyID = k.Public().ID()
		c.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, signed(c)))
	}
	return c
}

// signed is what the signature of a checkpoint covers.
func signed(c store.SignedCheckpoint) []byte {
	key := c.KeyID
	if key == "" {
		key = nobody
	}
	return fmt.Appendf(nil, "%s %d %s %s %s", checkpointWord, c.Seq, c.Hash, c.At.UTC().Format(checkpointTime), key)
}

// Line returns a checkpoint as it is written down.
func Line(c store.SignedCheckpoint) string {
	signature := c.Signature
	if signature == "" {
		signature = nobody
	}
	return string(signed(c)) + " " + signature
}

// errNoCheckpoint is a line of something else.
var errNoCheckpoint = errors.New("it is no checkpoint: that is " + checkpointWord + " SEQ HASH TIME KEY SIGNATURE")

// ParseLine reads what [Line] wrote, and nothing else.
func ParseLine(line string) (store.SignedCheckpoint, error) {
	words := strings.Split(line, " ")
	if len(words) != 6 || words[0] != checkpointWord {
		return store.SignedCheckpoint{}, errNoCheckpoint
	}
	seq, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || seq <= 0 {
		return store.SignedCheckpoint{}, fmt.Errorf("read checkpoint: %q is no number of an entry", words[1])
	}
	if raw, err := hex.DecodeString(words[2]); err != nil || len(raw) != 32 || words[2] != strings.ToLower(words[2]) {
		return store.SignedCheckpoint{}, fmt.Errorf("read checkpoint %d: the hash must be 64 small hex digits", seq)
	}
	at, err := time.Parse(checkpointTime, words[3])
	if err != nil {
		return store.SignedCheckpoint{}, fmt.Errorf("read checkpoint %d: the time must be like %s, got %q", seq, checkpointTime, words[3])
	}
	c := store.SignedCheckpoint{Checkpoint: store.Checkpoint{Seq: seq, Hash: words[2]}, At: at}
	if words[4] != nobody {
		c.KeyID = words[4]
	}
	if words[5] != nobody {
		c.Signature = words[5]
	}
	if (c.KeyID == "") != (c.Signature == "") || Line(c) != line {
		return store.SignedCheckpoint{}, fmt.Errorf("read checkpoint %d: it is not written as an agent writes it", seq)
	}
	return c, nil
}

// SignatureError is a checkpoint whose signature is not what it says.
type SignatureError struct {
	Seq     int64
	Problem string
}

// Error returns the sentence.
func (e *SignatureError) Error() string {
	return fmt.Sprintf("checkpoint at entry %d: %s", e.Seq, e.Problem)
}

// Check says whether a checkpoint is signed by one of the keys. A checkpoint of
// another key, or of none, is false; one that says to be of a key of the ring and is
// not is a [SignatureError].
func (r Keyring) Check(c store.SignedCheckpoint) (bool, error) {
	key, ok := r[c.KeyID]
	if !ok {
		return false, nil
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(c.Signature)
	if err != nil || !ed25519.Verify(key.key, signed(c), raw) {
		return false, &SignatureError{Seq: c.Seq, Problem: "its signature is not by " + c.KeyID + ": it was forged or changed"}
	}
	return true, nil
}

// View is a checkpoint as the API has it.
func View(c store.SignedCheckpoint) api.Checkpoint {
	return api.Checkpoint{
		Place: api.Place{Seq: c.Seq, Hash: c.Hash}, At: c.At.UTC(), KeyID: c.KeyID, Signature: c.Signature, Line: Line(c),
	}
}
