package chaos_test

import (
	"testing"
	"time"
)

// networkNemeses break the way of every other client to a standalone server.
var networkNemeses = []nemesis{
	{name: "replies lost", topology: "single", strays: true, strike: repliesLost},
	{name: "one reply lost", topology: "single", strays: true, strike: oneReplyLost},
	{name: "requests lost", topology: "single", strays: true, strike: requestsLost},
	{name: "one way", topology: "single", strays: true, strike: oneWay},
	{name: "partition", topology: "single", strays: true, strike: partition},
	{name: "half open", topology: "single", strays: true, strike: halfOpen},
	{name: "late delivery", topology: "single", strays: true, strike: lateDelivery},
	{name: "latency", topology: "single", strays: true, strike: latency},
	{name: "slices", topology: "single", strike: slicePackets},
}

func repliesLost(b *bed) {
	for range 3 {
		b.proxy.DropReplies(true)
		pause(leaseTTL / 4)
		b.proxy.Heal()
		pause(leaseTTL / 4)
	}
}

func oneReplyLost(b *bed) {
	for range 30 {
		b.proxy.CutAfterReplies(b.rng.IntN(12))
		pause(20 * time.Millisecond)
	}
	b.proxy.Heal()
}

func requestsLost(b *bed) {
	for _, d := range []time.Duration{leaseTTL / 4, longerThanLease} {
		b.proxy.DropRequests(true)
		pause(d)
		b.proxy.Heal()
		pause(leaseTTL / 4)
	}
}

func oneWay(b *bed) {
	b.proxy.DropReplies(true)
	pause(2 * leaseTTL)
	b.proxy.Heal()
}

func partition(b *bed) {
	b.proxy.Cut()
	pause(2 * leaseTTL)
	b.proxy.Heal()
}

func halfOpen(b *bed) {
	b.proxy.Freeze(true)
	pause(2 * leaseTTL)
	b.proxy.Cut() // nothing of it ever arrives
	b.proxy.Heal()
}

func lateDelivery(b *bed) {
	for _, d := range []time.Duration{leaseTTL / 3, longerThanLease} {
		b.proxy.Freeze(true)
		pause(d)
		b.proxy.Heal() // all of it arrives
		pause(leaseTTL / 4)
	}
}

func latency(b *bed) {
	for range 15 {
		b.proxy.Delay(time.Duration(b.rng.IntN(60)) * time.Millisecond)
		b.proxy.DelayRequests(time.Duration(b.rng.IntN(60)) * time.Millisecond)
		pause(50 * time.Millisecond)
	}
	b.proxy.Heal()
}

func slicePackets(b *bed) {
	for _, n := range []int{1, 3, 17} {
		b.proxy.Slice(n)
		b.progress(5)
	}
	b.proxy.Heal()
}

// Fault 14: requests take effect and their replies are lost, for less than a
// lease.
// fault: 14
func TestRepliesLost(t *testing.T) {
	storm(t, named("replies lost"))
}

// Fault 14, 16: a connection ends in place of any one reply.
// fault: 14
func TestOneReplyLost(t *testing.T) {
	storm(t, named("one reply lost"))
}

// Fault 15: requests never arrive.
// fault: 15
func TestRequestsLost(t *testing.T) {
	storm(t, named("requests lost"))
}

// Fault 21: requests arrive, replies do not, for longer than a lease.
// fault: 21
func TestOneWay(t *testing.T) {
	storm(t, named("one way"))
}

// Fault 19: half of the clients cannot reach the server, the others can.
// fault: 19
func TestPartition(t *testing.T) {
	storm(t, named("partition"))
}

// Fault 18: connections stay open and carry nothing.
// fault: 18
func TestHalfOpen(t *testing.T) {
	storm(t, named("half open"))
}

// Fault 18, 15: packets arrive after their sender has given them up.
// fault: 18
func TestLateDelivery(t *testing.T) {
	storm(t, named("late delivery"))
}

// Fault 17: latency of 0 to 120 ms that changes all the time.
// fault: 17
func TestLatency(t *testing.T) {
	storm(t, named("latency"))
}

// Fault 17: packets of one, three and 17 bytes.
// fault: 17
func TestSlices(t *testing.T) {
	storm(t, named("slices"))
}
