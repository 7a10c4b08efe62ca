package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// SlotLength is the time that one [Row] covers; slots begin at full hours, UTC.
const SlotLength = time.Hour

// SlotOf returns the begin of the slot that t is in.
func SlotOf(t time.Time) time.Time { return t.UTC().Truncate(SlotLength) }

// maxWorst is how many keys a row keeps: those with the longest holds.
const maxWorst = 5

// Worst is the longest hold of one key, and how many of the row's longest holds
// the key had.
type Worst struct {
	Key     string // exact bytes
	DB      int
	Holder  string // as far as it is known: app@host:pid
	How     locksteward.EndedHow
	EndedAt time.Time
	Low     time.Duration
	High    time.Duration // if Bounded
	Bounded bool
}

// compareLength orders holds, the longest first: by how long they lasted at least,
// since a wide upper bound tells how far two looks were apart, then at most, where
// that is known.
func compareLength(a, b Worst) int {
	most := func(w Worst) time.Duration {
		if w.Bounded {
			return w.High
		}
		return w.Low
	}
	return cmp.Or(cmp.Compare(b.Low, a.Low), cmp.Compare(most(b), most(a)))
}

// Row is what is kept of the holds of one class in one slot.
type Row struct {
	Target string
	Class  string
	Slot   time.Time

	// Low counts how long each hold lasted at least, High how long at most, of
	// those of which that is known. A hold counts where it ended.
	Low, High Histogram
	// Lease counts the TTLs that the holds had, NoTTL those without.
	Lease Histogram
	NoTTL int64
	// Renewed are holds whose expiry moved, Several may have been several in a row.
	Renewed, Several int64
	Endings          map[locksteward.EndedHow]int64
	Worst            []Worst // the longest first, each key once

	// Reported says that processes of the lock library reported what they did: Acquired,
	// Contended and Failed are lower bounds.
	Reported                    bool
	Acquired, Contended, Failed int64
	// WaitersKnown says that waiters could be seen; MaxWaiters is the largest
	// number at one time, LongestWait the longest that one had waited.
	WaitersKnown bool
	MaxWaiters   int64
	LongestWait  time.Duration
}

// Holds is how many holds ended.
func (r Row) Holds() int64 { return r.Low.Count() }

// unbounded is of how many holds nobody knows how long they lasted at most.
func (r Row) unbounded() int64 { return r.Low.Count() - r.High.Count() }

// Add counts one hold.
func (r *Row) Add(h Hold) {
	r.Low.Add(h.Low)
	if h.Bounded {
		r.High.Add(h.High)
	}
	switch {
	case h.Lease == locksteward.NoExpiry:
		r.NoTTL++
	case h.Lease > 0:
		r.Lease.Add(h.Lease)
	}
	if h.Renewed {
		r.Renewed++
	}
	if h.Several {
		r.Several++
	}
	if r.Endings == nil {
		r.Endings = map[locksteward.EndedHow]int64{}
	}
	r.Endings[h.How]++
	w := Worst{Key: h.Key, DB: h.DB, How: h.How, EndedAt: h.EndedAt, Low: h.Low, High: h.High, Bounded: h.Bounded}
	if n := len(r.Worst); n == maxWorst && compareLength(r.Worst[n-1], w) <= 0 {
		return
	}
	w.Holder = HolderText(h.Holder)
	r.Worst = worstOf(append(r.Worst, w), maxWorst)
}

// Merge adds what another row of the same class counted.
func (r *Row) Merge(o Row) {
	r.Low.Merge(o.Low)
	r.High.Merge(o.High)
	r.Lease.Merge(o.Lease)
	r.NoTTL += o.NoTTL
	r.Renewed += o.Renewed
	r.Several += o.Several
	if r.Endings == nil {
		r.Endings = map[locksteward.EndedHow]int64{}
	}
	for how, n := range o.Endings {
		r.Endings[how] += n
	}
	r.Worst = worstOf(slices.Concat(r.Worst, o.Worst), maxWorst)
	r.Reported = r.Reported || o.Reported
	r.Acquired += o.Acquired
	r.Contended += o.Contended
	r.Failed += o.Failed
	r.WaitersKnown = r.WaitersKnown || o.WaitersKnown
	r.MaxWaiters = max(r.MaxWaiters, o.MaxWaiters)
	r.LongestWait = max(r.LongestWait, o.LongestWait)
}

// Clone returns a copy that shares nothing.
func (r Row) Clone() Row {
	r.Low, r.High, r.Lease = r.Low.Clone(), r.High.Clone(), r.Lease.Clone()
	r.Endings, r.Worst = maps.Clone(r.Endings), slices.Clone(r.Worst)
	return r
}

// worstOf keeps the longest hold of each key, and the n longest of those.
func worstOf(list []Worst, n int) []Worst {
	slices.SortStableFunc(list, func(a, b Worst) int {
		return cmp.Or(compareLength(a, b), cmp.Compare(a.DB, b.DB), strings.Compare(a.Key, b.Key))
	})
	var out []Worst
	for _, w := range list {
		if len(out) < n && !slices.ContainsFunc(out, func(o Worst) bool { return o.DB == w.DB && o.Key == w.Key }) {
			out = append(out, w)
		}
	}
	return out
}

// stats is the stored form of a row's counts. Fields may be added.
type stats struct {
	Low         Histogram                      `json:"low"`
	High        Histogram                      `json:"high"`
	Lease       Histogram                      `json:"lease"`
	NoTTL       int64                          `json:"no_ttl,omitempty"`
	Renewed     int64                          `json:"renewed,omitempty"`
	Several     int64                          `json:"several,omitempty"`
	Endings     map[locksteward.EndedHow]int64 `json:"endings,omitempty"`
	Worst       []storedWorst                  `json:"worst,omitempty"`
	Reported    bool                           `json:"reported,omitempty"`
	Acquired    int64                          `json:"acquired,omitempty"`
	Contended   int64                          `json:"contended,omitempty"`
	Failed      int64                          `json:"failed,omitempty"`
	Waiters     bool                           `json:"waiters_known,omitempty"`
	MaxWaiters  int64                          `json:"max_waiters,omitempty"`
	LongestWait int64                          `json:"longest_wait_us,omitempty"`
}

type storedWorst struct {
	Key     []byte               `json:"key"`
	DB      int                  `json:"db,omitempty"`
	Holder  string               `json:"holder,omitempty"`
	How     locksteward.EndedHow `json:"how"`
	EndedAt int64                `json:"ended_us"`
	LowUs   int64                `json:"low_us"`
	HighUs  *int64               `json:"high_us,omitempty"`
}

// Encode returns the row's counts for a store, without target, class and slot.
func (r Row) Encode() (string, error) {
	s := stats{
		Low: r.Low, High: r.High, Lease: r.Lease, NoTTL: r.NoTTL, Renewed: r.Renewed, Several: r.Several, Endings: r.Endings,
		Reported: r.Reported, Acquired: r.Acquired, Contended: r.Contended, Failed: r.Failed,
		Waiters: r.WaitersKnown, MaxWaiters: r.MaxWaiters, LongestWait: r.LongestWait.Microseconds(),
	}
	for _, w := range r.Worst {
		stored := storedWorst{Key: []byte(w.Key), DB: w.DB, Holder: w.Holder, How: w.How, EndedAt: w.EndedAt.UnixMicro(), LowUs: w.Low.Microseconds()}
		if w.Bounded {
			stored.HighUs = new(w.High.Microseconds())
		}
		s.Worst = append(s.Worst, stored)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode holds of class %q: %w", r.Class, err)
	}
	return string(raw), nil
}

// Decode fills in the counts that [Row.Encode] gave.
func (r *Row) Decode(text string) error {
	var s stats
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("decode holds of class %q: %w", r.Class, err)
	}
	r.Low, r.High, r.Lease, r.NoTTL, r.Renewed, r.Several, r.Endings = s.Low, s.High, s.Lease, s.NoTTL, s.Renewed, s.Several, s.Endings
	r.Reported, r.Acquired, r.Contended, r.Failed = s.Reported, s.Acquired, s.Contended, s.Failed
	r.WaitersKnown, r.MaxWaiters, r.LongestWait = s.Waiters, s.MaxWaiters, micros(s.LongestWait)
	r.Worst = nil
	for _, w := range s.Worst {
		out := Worst{Key: string(w.Key), DB: w.DB, Holder: w.Holder, How: w.How, EndedAt: time.UnixMicro(w.EndedAt).UTC(), Low: micros(w.LowUs)}
		if w.HighUs != nil {
			out.High, out.Bounded = micros(*w.HighUs), true
		}
		r.Worst = append(r.Worst, out)
	}
	return nil
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
