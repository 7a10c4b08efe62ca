package pace

import (
	"slices"
	"time"
)

// Counters are what a server reports of its use of processors, in seconds since its start. A negative field is not
// reported.
type Counters struct {
	// Active is the time in which the main thread did not wait for events, whether it had a processor or not
	// (used_active_time_main_thread of Valkey 9.1).
	Active float64
	// Main is the processor time of the main thread (used_cpu_user_main_thread and used_cpu_sys_main_thread, Redis 7.0).
	Main float64
	// Process is the processor time of all threads (used_cpu_user and used_cpu_sys).
	Process float64
	// IOThreads says that other threads read and write for clients, so that Process says little of the main thread.
	IOThreads bool
}

// main returns the time of the main thread, negative if it is not known.
func (c Counters) main() float64 {
	switch {
	case c.Active >= 0:
		return c.Active
	case c.Main >= 0:
		return c.Main
	case c.IOThreads:
		return -1
	}
	return c.Process
}

const (
	// SampleEvery is how often the counters of a server are read while it is swept.
	SampleEvery = 50 * time.Millisecond
	// sampleMost is the longest time between two samples that says something of now.
	sampleMost = time.Second
	// agreeing samples in a row, within agreement of each other, are believed.
	agreeing  = 3
	agreement = 0.1
	// overfull is more than one thread can use, with room for the error of a sample.
	overfull = 1.3
	// jumpRest is how long a server is held to the busy bound after its counters jumped: they were those of another
	// process, as behind a proxy that answers for many servers.
	jumpRest = time.Minute
	// uncertainty is the part of our own cost by which it may be underestimated: so much of what looks like others'
	// use may be ours.
	uncertainty = 0.25
)

// usage is the part of the time of a server's main thread that others use.
type usage struct {
	at      time.Time // of the last sample; zero before the first
	main    float64   // then
	recent  []float64 // use by others in the last intervals, at most [agreeing], the latest last
	believe bool
	jumped  time.Time // last
	missing bool      // the last reply had no counters that help
}

// add takes a sample. ours is what we cost the server since the last one.
func (u *usage) add(now time.Time, c Counters, ours time.Duration) {
	main, since := c.main(), now.Sub(u.at)
	before, first := u.main, u.at.IsZero() || u.missing
	u.missing = main < 0
	u.at, u.main = now, main
	switch {
	case u.missing, first, since > sampleMost, since <= 0:
		u.forget()
		return
	case main < before, (main-before)/since.Seconds() > overfull:
		u.jumped = now
		u.forget()
		return
	}
	others := main - before - (1+uncertainty)*ours.Seconds()
	u.recent = append(u.recent, min(1, max(0, others/since.Seconds())))
	u.recent = u.recent[max(0, len(u.recent)-agreeing):]
	if len(u.recent) == agreeing && slices.Max(u.recent)-slices.Min(u.recent) <= agreement {
		u.believe = true
	}
}

func (u *usage) forget() { u.recent, u.believe = u.recent[:0], false }

// now returns the use by others, in [0, 1], or the reason why it is not known. Of the last two samples the larger
// counts: a load that begins is believed at once, one that ends after a second look.
func (u *usage) now(now time.Time) (use float64, why Reason) {
	switch {
	case u.missing:
		return 1, Unknown
	case !u.jumped.IsZero() && now.Sub(u.jumped) < jumpRest:
		return 1, Jumped
	case !u.believe || now.Sub(u.at) > sampleMost:
		return 1, Starting
	}
	return slices.Max(u.recent[max(0, len(u.recent)-2):]), ""
}

// quiet says that others are known to use less than [quietUse]. Of the last two samples the smaller counts: what a sample
// says of so little is uncertain, and a load that begins shows in both soon.
func (u *usage) quiet(now time.Time) bool {
	_, why := u.now(now)
	return why == "" && slices.Min(u.recent[max(0, len(u.recent)-2):]) < quietUse
}
