package pace

import (
	"slices"
	"time"
)

const (
	// ProbeEvery is how often the round trip of a trivial command is measured while a server is swept.
	ProbeEvery = 100 * time.Millisecond
	// delayRecent round trips, 2 s of them, are what commands take now.
	delayRecent = 20
	delayFew    = 5 // say nothing
	// floorSlots minutes are what the least round trip is taken from.
	floorSlots = 10
	usualMost  = 3
	// delayMin is the least delay that counts.
	delayMin = time.Millisecond

	// lowerEvery is how often delay halves the share at most, raisePerSecond how fast that is taken back.
	lowerEvery     = 500 * time.Millisecond
	raisePerSecond = 0.25
	lowest         = 1.0 / 64
)

// delay lowers the share while commands take longer than they could for a reason that processor time does not show,
// such as a neighbor on the server's core. It never raises it.
type delay struct {
	trips, net []time.Duration // the last delayRecent round trips, and those without delay of our own machine
	floor      [floorSlots]time.Duration
	slot       int64 // the minute that floor was last written for

	factor             float64
	lowered, changedAt time.Time
}

// add takes the round trip of a trivial command, of which so much at most is delay of our own machine.
func (d *delay) add(now time.Time, rtt, own time.Duration) {
	d.trips, d.net = append(d.trips, rtt), append(d.net, max(0, rtt-own))
	d.trips, d.net = d.trips[max(0, len(d.trips)-delayRecent):], d.net[max(0, len(d.net)-delayRecent):]
	minute := now.Unix() / 60
	for passed := min(minute-d.slot, floorSlots); passed > 0; passed-- {
		d.floor[(minute-passed+1)%floorSlots] = 0
	}
	d.slot = minute
	if at := &d.floor[minute%floorSlots]; *at == 0 || rtt < *at {
		*at = rtt
	}
	switch {
	case d.slow():
		if now.Sub(d.lowered) >= lowerEvery {
			d.factor = max(d.factor/2, lowest)
			d.lowered, d.changedAt = now, now
		}
	case d.factor < 1:
		d.factor = min(1, d.factor*(1+raisePerSecond*now.Sub(d.changedAt).Seconds()))
		d.changedAt = now
	}
}

// least returns the shortest round trip of the last ten minutes, 0 before any.
func (d *delay) least() time.Duration {
	least := time.Duration(0)
	for _, v := range d.floor {
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}

// usual returns the median of the recent round trips, 0 before any; where our own machine is busy that is anything, so at
// most usualMost of the least counts.
func (d *delay) usual() time.Duration {
	return min(percentile(d.trips, 50), usualMost*d.least())
}

func (d *delay) slow() bool {
	if len(d.net) < delayFew {
		return false
	}
	least := d.least()
	return percentile(d.net, 90)-least > max(least, delayMin)
}

// percentile returns the p-th percentile of list, 0 of an empty one.
func percentile(list []time.Duration, p int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return sorted[(len(sorted)*p-1)/100]
}
