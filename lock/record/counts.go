package record

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxClasses is how many classes a process counts by itself; those that come
// later are counted together as [OtherClasses].
const MaxClasses = 32

// OtherClasses is the class of what is counted beyond [MaxClasses].
const OtherClasses = "_other"

// fieldCount is the prefix of the fields of the instance hash that have counts.
const fieldCount = "count:"

// Counts are what a process has done with the locks of one class since it
// started.
type Counts struct {
	Acquired      int64 // locks taken
	Failed        int64 // acquires that ended without the lock, whatever the reason
	Contended     int64 // acquires that found another holder first
	Renewed       int64
	RenewFailures int64
	Lost          int64 // holds that ended before their release
}

func (c *Counts) all() [6]*int64 {
	return [...]*int64{&c.Acquired, &c.Failed, &c.Contended, &c.Renewed, &c.RenewFailures, &c.Lost}
}

// encode returns the numbers in the order of the struct, one space between.
func (c Counts) encode() string {
	b := make([]byte, 0, 64)
	for i, n := range c.all() {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, *n, 10)
	}
	return string(b)
}

// decodeCounts ignores words behind those it knows: later versions may say more.
func decodeCounts(text string) (Counts, error) {
	var c Counts
	all := c.all()
	parts := strings.Split(clip(text, MaxText), " ")
	if len(parts) < len(all) {
		return Counts{}, fmt.Errorf("want %d numbers, got %d", len(all), len(parts))
	}
	for i, n := range all {
		v, err := parseNumber(parts[i])
		if err != nil {
			return Counts{}, err
		}
		*n = v
	}
	return c, nil
}
