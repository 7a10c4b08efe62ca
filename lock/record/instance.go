package record

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Heartbeat and HeartbeatTTL are how often a process refreshes its instance key and how long that key lives
// without.
const (
	Heartbeat    = 5 * time.Second
	HeartbeatTTL = 15 * time.Second
)

// MaxClasses is how many classes a process counts by themselves; those that come later are counted together as
// OtherClasses.
const (
	MaxClasses   = 32
	OtherClasses = "_other"
)

// Instance is the heartbeat of one process that uses the lock library: a hash at [InstanceKey], written every
// [Heartbeat] with TTL [HeartbeatTTL].
type Instance struct {
	ID      string
	App     string
	Host    string
	PID     int
	Started int64  // ms of server time at the first heartbeat
	Slot    string // declared by the operator (pod name); "" for none
	// Counts are what the process has done by class of its locks: lower bounds, since they do not have what
	// happened after the last heartbeat.
	Counts map[string]Counts
}

// Counts are what a process has done with the locks of one class since it started.
type Counts struct {
	Acquired      int64 // locks taken
	Failed        int64 // acquires that ended without the lock, whatever the reason
	Contended     int64 // acquires that found another holder first
	Renewed       int64
	RenewFailures int64
	Lost          int64 // holds that ended before their release
}

// fieldCount is the prefix of the fields that have counts.
const fieldCount = "count:"

// Fields returns i as the field, value, … list that HSET takes, in a fixed order, without empty ones.
func (i *Instance) Fields() []any {
	list := make([]any, 0, 12)
	add := func(name, value string) {
		if value != "" {
			list = append(list, name, value)
		}
	}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	add("id", i.ID)
	add("app", i.App)
	add("host", i.Host)
	add("pid", number(int64(i.PID)))
	add("started", number(i.Started))
	add("slot", i.Slot)
	for _, class := range slices.Sorted(maps.Keys(i.Counts)) {
		c := i.Counts[class]
		add(fieldCount+class, fmt.Sprintf("%d %d %d %d %d %d", c.Acquired, c.Failed, c.Contended, c.Renewed, c.RenewFailures, c.Lost))
	}
	return list
}

// DecodeInstance reads an instance hash as [Decode] reads metadata: it keeps what it can read even when it returns
// an error that wraps [ErrMalformed]. Fields, and words behind counts, that it does not know are ignored.
func DecodeInstance(fields map[string]string) (*Instance, error) {
	i := &Instance{ID: clip(fields["id"], MaxText), App: clip(fields["app"], MaxText), Host: clip(fields["host"], MaxText), Slot: clip(fields["slot"], MaxText)}
	var errs []error
	fail := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: field %q has %q: %w", ErrMalformed, clip(name, 64), clip(fields[name], 64), err))
		}
	}
	number := func(name string, limit int64) (n int64) {
		if fields[name] == "" {
			return 0
		}
		err := parseNumbers([]string{fields[name]}, &n)
		if err == nil && n > limit {
			n, err = 0, fmt.Errorf("above %d", limit)
		}
		fail(name, err)
		return n
	}
	if i.ID == "" {
		errs = append(errs, fmt.Errorf("%w: field %q is missing", ErrMalformed, "id"))
	}
	i.PID, i.Started = int(number("pid", math.MaxInt32)), number("started", math.MaxInt64)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		class, counted := strings.CutPrefix(name, fieldCount)
		switch {
		case !counted:
		case len(i.Counts) > MaxClasses:
			errs = append(errs, fmt.Errorf("%w: more than %d classes", ErrMalformed, MaxClasses+1))
			return i, errors.Join(errs...)
		default:
			if i.Counts == nil {
				i.Counts = map[string]Counts{}
			}
			var c Counts
			err := parseNumbers(strings.Split(clip(fields[name], MaxText), " "), &c.Acquired, &c.Failed, &c.Contended, &c.Renewed, &c.RenewFailures, &c.Lost)
			if fail(name, err); err == nil {
				i.Counts[clip(class, MaxText)] = c
			}
		}
	}
	return i, errors.Join(errs...)
}
