package record

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Instance is the heartbeat of one process that uses the lock library: a hash
// at [InstanceKey], written every [Heartbeat] with TTL [HeartbeatTTL].
type Instance struct {
	ID      string
	App     string
	Host    string
	PID     int
	Started int64  // ms of server time at the first heartbeat
	Slot    string // declared by the operator (pod name); "" for none
	// Counts are what the process has done so far by class of its locks: lower
	// bounds, since the last ones are not told.
	Counts map[string]Counts
	// Unknown holds the fields that this version does not know.
	Unknown map[string]string
}

// Fields returns i as the field, value, … list that HSET takes, in a fixed
// order, without empty ones.
func (i *Instance) Fields() []any {
	list := make([]any, 0, 12)
	text := func(name, value string) {
		if value != "" {
			list = append(list, name, value)
		}
	}
	text(FieldID, i.ID)
	text(FieldApp, i.App)
	text(FieldHost, i.Host)
	if i.PID != 0 {
		list = append(list, FieldPID, strconv.Itoa(i.PID))
	}
	if i.Started != 0 {
		list = append(list, FieldStarted, strconv.FormatInt(i.Started, 10))
	}
	text(FieldSlot, i.Slot)
	for _, class := range slices.Sorted(maps.Keys(i.Counts)) {
		list = append(list, fieldCount+class, i.Counts[class].encode())
	}
	return list
}

// DecodeInstance reads an instance hash as [Decode] reads metadata: it keeps
// what it can read even when it returns an error that wraps [ErrMalformed].
func DecodeInstance(fields map[string]string) (*Instance, error) {
	d := decoder{fields: fields}
	i := &Instance{
		ID:      d.text(FieldID),
		App:     d.text(FieldApp),
		Host:    d.text(FieldHost),
		PID:     d.integer(FieldPID, math.MaxInt32),
		Started: d.number(FieldStarted, math.MaxInt64),
		Slot:    d.text(FieldSlot),
	}
	i.Counts = d.counts()
	i.Unknown = d.unknown()
	if i.ID == "" {
		d.missing(FieldID)
	}
	return i, errors.Join(d.errs...)
}

// counts takes the fields that have counts, in order of their names.
func (d *decoder) counts() map[string]Counts {
	var names []string
	for name := range d.fields {
		if strings.HasPrefix(name, fieldCount) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	if len(names) > MaxClasses+1 {
		d.errs = append(d.errs, fmt.Errorf("%w: %d classes, kept %d", ErrMalformed, len(names), MaxClasses+1))
		names = names[:MaxClasses+1]
	}
	all := make(map[string]Counts, len(names))
	for _, name := range names {
		text, _ := d.take(name)
		counts, err := decodeCounts(text)
		d.fail(name, text, err)
		if err == nil {
			all[clip(name[len(fieldCount):], MaxText)] = counts
		}
	}
	return all
}
