package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// streamReceiver writes to a stream that it does not own, the standard output.
type streamReceiver struct{ w io.Writer }

func (r *streamReceiver) write(_ context.Context, records []record) error {
	var all []byte
	for _, rec := range records {
		all = append(all, rec.line...)
	}
	if _, err := r.w.Write(all); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

func (r *streamReceiver) reopen()      {}
func (r *streamReceiver) close() error { return nil }

// fileReceiver appends to a file and waits until the disk has it.
type fileReceiver struct {
	path string

	mu   sync.Mutex
	file *os.File
}

func (r *fileReceiver) write(_ context.Context, records []record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		if err := r.open(); err != nil {
			return r.explain(err)
		}
	}
	info, err := r.file.Stat()
	if err != nil {
		return r.explain(err)
	}
	var all []byte
	for _, rec := range records {
		all = append(all, rec.line...)
	}
	_, err = r.file.Write(all)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		// Half a batch is taken back: it comes again.
		return r.explain(errors.Join(err, r.file.Truncate(info.Size())))
	}
	return nil
}

// open opens the file at its end. What a crash in the middle of a line left there
// is taken away: the line comes again.
func (r *fileReceiver) open() error {
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := mendTail(f); err != nil {
		return errors.Join(err, f.Close())
	}
	r.file = f
	return nil
}

// tail is how much of the end of a file is looked at: more than a line.
const tail = 1 << 20

// mendTail cuts off a line of ours without an end.
func mendTail(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err
	}
	from := max(0, info.Size()-tail)
	raw := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(raw, from); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	end := bytes.LastIndexByte(raw, '\n') + 1
	rest := raw[end:]
	if len(rest) == 0 {
		return nil
	}
	ours := false
	for _, begin := range []string{`{"seq":`, `{"checkpoint":`, checkpointWord} {
		n := min(len(begin), len(rest))
		ours = ours || string(rest[:n]) == begin[:n]
	}
	if !ours {
		return errors.New("its last line has no end and is not ours; name another file")
	}
	return f.Truncate(from + int64(end))
}

func (r *fileReceiver) reopen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		_ = r.file.Close() // it was synced
		r.file = nil
	}
}

func (r *fileReceiver) close() error {
	r.reopen()
	return nil
}

func (r *fileReceiver) explain(err error) error {
	return fmt.Errorf("write audit file %q: %w; make room or the file writable: it goes on by itself", r.path, err)
}
