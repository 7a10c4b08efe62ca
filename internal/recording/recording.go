package recording

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Format and Version stand in the first line of a recording.
const (
	Format  = "locksteward-recording"
	Version = 1
)

// MaxLine is the longest line that is read.
const MaxLine = 4 << 20

// Kinds of looks.
const (
	lookSweep  = "sweep"
	lookDirect = "direct"
)

// Look is one look at a target as a recording has it: a sweep, or an update.
type Look struct {
	// Direct says that it is an update: nothing is known of locks that are not in it, and
	// Sweep has the fields of [locksteward.Update] alone.
	Direct bool
	Sweep  locksteward.Sweep
}

// OfUpdate is the look that records u.
func OfUpdate(u locksteward.Update) Look {
	return Look{Direct: true, Sweep: locksteward.Sweep{
		Target: u.Target, Started: u.Started, At: u.At, Duration: u.Duration,
		Locks: u.Locks, Endings: u.Endings, Losses: u.Losses, Waiters: u.Waiters, Events: u.Events,
	}}
}

// header is the first line.
type header struct {
	Format   string
	Version  int
	Recorded time.Time
	Program  string
}

// lists are the fields of a sweep of which each element has a line of its own, by
// the name of one element; all other fields stand in the line of the look. They
// come from the type, so that what is added to a sweep is recorded.
var lists = func() map[string]int {
	out := map[string]int{}
	for i := range sweepType.NumField() {
		f := sweepType.Field(i)
		if f.Type.Kind() == reflect.Slice && f.Name != "Masters" {
			out[singular(snake(f.Name))] = i
		}
	}
	return out
}()

var sweepType = reflect.TypeFor[locksteward.Sweep]()

// singular is the name of one element of a list.
func singular(list string) string {
	if one, ok := strings.CutSuffix(list, "sses"); ok {
		return one + "ss"
	}
	return strings.TrimSuffix(list, "s")
}

// Writer writes a recording.
type Writer struct {
	w   *bufio.Writer
	buf []byte
}

// NewWriter writes the first line; program says what wrote it, at when.
func NewWriter(w io.Writer, program string, at time.Time) (*Writer, error) {
	first := appendValue(nil, reflect.ValueOf(header{Format: Format, Version: Version, Recorded: at.UTC(), Program: program}))
	if _, err := w.Write(append(first, '\n')); err != nil {
		return nil, fmt.Errorf("write recording: %w", err)
	}
	return &Writer{w: bufio.NewWriter(w)}, nil
}

// Write appends a look and hands all of it to the file.
func (w *Writer) Write(l Look) error {
	if err := w.look(l); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

func (w *Writer) look(l Look) error {
	kind := lookSweep
	if l.Direct || len(l.Sweep.Masters) == 0 { // without a master nothing is known of other locks either
		kind = lookDirect
	}
	collected := l.Sweep.Collect()
	sweep := reflect.ValueOf(&collected).Elem()
	b := appendText(append(w.buf[:0], `{"look":`...), kind)
	for i := range sweepType.NumField() {
		f := sweepType.Field(i)
		if !f.IsExported() {
			continue
		}
		if _, list := lists[singular(snake(f.Name))]; list || sweep.Field(i).IsZero() {
			continue
		}
		b = append(appendText(append(b, ','), snake(f.Name)), ':')
		b = appendValue(b, sweep.Field(i))
	}
	w.buf = append(b, "}\n"...)
	if _, err := w.w.Write(w.buf); err != nil {
		return err
	}
	for i := range sweepType.NumField() {
		name := singular(snake(sweepType.Field(i).Name))
		if _, list := lists[name]; !list {
			continue
		}
		for k := range sweep.Field(i).Len() {
			b := append(appendText(append(w.buf[:0], '{'), name), ':')
			w.buf = append(appendValue(b, sweep.Field(i).Index(k)), "}\n"...)
			if _, err := w.w.Write(w.buf); err != nil {
				return err
			}
		}
	}
	return w.w.Flush()
}
