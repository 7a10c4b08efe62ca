package pace

import (
	"slices"
	"time"
)

// Costs of a call as measured on Redis 7.0 on the loopback interface. They are where the estimates begin.
const (
	callCost    = 20 * time.Microsecond  // of a round trip
	keyCost     = 500 * time.Nanosecond  // per COUNT of SCAN
	commandCost = 500 * time.Nanosecond  // per command of a pipeline
	costRecent  = 15                     // calls whose median counts
	cheapest    = 0.5                    // of these costs, at least
	dearest     = 10.0                   // at most: above that it was work for others, or ours
	longQuiet   = 250 * time.Microsecond // one write, while others use less than [quietUse]
	longUsed    = 100 * time.Microsecond // one write, else
	quietUse    = 0.01
	minBatch    = 10 // below that a call is mostly round trip
	maxBatch    = 1000
	firstBatch  = 100
)

// cost learns what calls of one kind cost the server, from how much longer they take than trivial commands: those wait
// as long for others, on the server and on our own machine.
type cost struct {
	each   time.Duration // of one key or command
	ratios []float64     // what the last calls took, in multiples of call and each
	batch  int           // of the next call
}

func (c *cost) floor(n int) time.Duration { return callCost + time.Duration(n)*c.each }

// add takes a call of n which took rtt where a trivial command, which is a call without keys, usually takes usual.
func (c *cost) add(n int, rtt, usual time.Duration) {
	c.ratios = append(c.ratios, float64(rtt-usual+callCost)/float64(c.floor(n)))
	c.ratios = c.ratios[max(0, len(c.ratios)-costRecent):]
}

// ratio returns by how much calls are dearer than their floor, most at most.
func (c *cost) ratio(most float64) float64 {
	ratio := 1.0
	if len(c.ratios) > 0 {
		sorted := slices.Sorted(slices.Values(c.ratios))
		ratio = sorted[len(sorted)/2]
	}
	return max(cheapest, min(ratio, most, dearest))
}

// fit sets the size of the next call so that it keeps the server for target at most, where calls are dearer than their
// floor by ratio.
func (c *cost) fit(target time.Duration, ratio float64) {
	n := int((time.Duration(float64(target)/ratio) - callCost) / c.each)
	c.batch = max(minBatch, min(n, 2*c.batch, maxBatch))
}
