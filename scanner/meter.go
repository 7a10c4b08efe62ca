package scanner

import "time"

// meterEvery is how often a server is asked how much processor time it has used.
const meterEvery = time.Second

// minScale bounds how much less than estimated a call may be booked: a wrong
// reading must not let sweeping run free.
const minScale = 1.0 / 20

// meter corrects what calls are thought to cost by what the server says it has
// used, for all clients together: ours cannot have been more than that. From
// outside, a call on a machine that is busy or far away looks dearer than it is.
type meter struct {
	at        time.Time // of the last reading; zero before the first
	cpu       float64   // seconds, then
	estimated time.Duration
	// scale is the part of the estimates that is booked, (0, 1].
	scale float64

	main float64 // seconds of the thread that executes commands, then
	// busy is the part of its time which that thread was busy with what others asked
	// for, between the last two readings; 0 if it is not known.
	busy float64
}

// estimate takes what a call is thought to have cost and returns what to book.
func (m *meter) estimate(took time.Duration) time.Duration {
	m.estimated += took
	return time.Duration(float64(took) * m.scale)
}

// due says that it is time for a reading.
func (m *meter) due(now time.Time) bool { return now.Sub(m.at) >= meterEvery }

// read takes the processor time that the server's process has used since its
// start, and that of its thread which executes commands, in seconds; negative if it
// does not tell.
func (m *meter) read(now time.Time, cpu, main float64) {
	used, estimated, since := cpu-m.cpu, m.estimated, now.Sub(m.at)
	first := m.at.IsZero() || cpu < m.cpu // or another process
	busy := 0.0
	if !first && main >= 0 && m.main >= 0 {
		busy = max(0, (main-m.main-estimated.Seconds()*m.scale)/since.Seconds())
	}
	m.at, m.cpu, m.main, m.busy, m.estimated = now, cpu, main, busy, 0
	switch {
	case cpu < 0:
		m.scale = 1
	case first, since > 5*meterEvery:
		// What it used while we slept says nothing of our calls.
	case estimated.Seconds()*m.scale > used:
		// Even if all of it was ours, it was less than was booked.
		m.scale = max(used/estimated.Seconds(), minScale)
	default:
		// Others had work done too, and how much was ours cannot be told: what was
		// learned is forgotten slowly.
		m.scale = min(1, m.scale*(1+0.03*since.Seconds()))
	}
}
