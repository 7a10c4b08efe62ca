package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// maxLine bounds one line of a file: far above the longest entry.
const maxLine = 16 << 20

// Anchors are places of the chain that were written down elsewhere.
type Anchors struct {
	Places []store.Checkpoint
	// Signed is how many of them have a good signature by a key that counts.
	Signed int
	// Unsigned is how many have none, or one by a key that was not given.
	Unsigned int
}

// ReadAnchors reads a file of checkpoints: lines as [Line] writes them, lines of an
// export or of a sink. A signature by a key of the ring is checked.
func ReadAnchors(r io.Reader, keys Keyring) (Anchors, error) {
	var out Anchors
	plain, err := uncompressed(r)
	if err != nil {
		return out, err
	}
	n := 0
	err = eachLine(plain, func(line []byte) error {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return nil
		}
		if err := out.add(line, keys); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		return nil
	})
	if err == nil && len(out.Places) == 0 {
		err = errors.New("there is no checkpoint in it")
	}
	return out, err
}

func (a *Anchors) add(line []byte, keys Keyring) error {
	text := string(line)
	if line[0] == '{' {
		var known struct {
			Checkpoint string           `json:"checkpoint"`
			Export     *json.RawMessage `json:"export"`
			End        *json.RawMessage `json:"end"`
			api.Place
		}
		if err := json.Unmarshal(line, &known); err != nil {
			return err
		}
		switch {
		case known.Export != nil || known.End != nil:
			return nil
		case known.Checkpoint == "" && known.Seq > 0 && known.Hash != "":
			a.Places = append(a.Places, store.Checkpoint{Seq: known.Seq, Hash: known.Hash})
			a.Unsigned++
			return nil
		}
		text = known.Checkpoint
	}
	c, err := ParseLine(text)
	if err != nil {
		return err
	}
	good, err := keys.Check(c)
	if err != nil {
		return err
	}
	if good {
		a.Signed++
	} else {
		a.Unsigned++
	}
	a.Places = append(a.Places, c.Checkpoint)
	return nil
}

// eachLine calls fn with each line and its end; the last may lack one.
func eachLine(r io.Reader, fn func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, part...); len(long) > maxLine {
				return fmt.Errorf("a line is longer than %d bytes", maxLine)
			}
			continue
		}
		line := part
		if len(long) > 0 {
			line = append(long, part...)
			long = nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			if ferr := fn(line); ferr != nil {
				return ferr
			}
		}
		if err != nil {
			return nil
		}
	}
}
