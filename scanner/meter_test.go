package scanner

import (
	"math"
	"testing"
	"time"
)

// rounds has m book calls that are estimated at est and cost cost each, calls of
// them a second, beside others who use other seconds of processor time a second;
// it returns what is booked of one call in the end.
func rounds(m *meter, seconds, calls int, est, cost time.Duration, other float64) time.Duration {
	now, cpu := m.at.Add(time.Second), m.cpu+50 // it has not been asked for a while
	m.estimated = 0
	m.at = time.Time{}
	m.read(now, cpu, -1)
	var booked time.Duration
	for range seconds {
		for range calls {
			booked = m.estimate(est)
		}
		now = now.Add(meterEvery)
		cpu += float64(calls)*cost.Seconds() + other
		m.read(now, cpu, -1)
	}
	return booked
}

func TestMeterFindsTheTrueCost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		est, cost time.Duration
		other     float64
		want      time.Duration
	}{
		{"an idle server shows what our calls cost", time.Millisecond, 200 * time.Microsecond, 0, 200 * time.Microsecond},
		{"what was estimated right stays", 200 * time.Microsecond, 200 * time.Microsecond, 0, 200 * time.Microsecond},
		{"on a busy server nothing can be told: as estimated", time.Millisecond, 200 * time.Microsecond, 0.9, time.Millisecond},
		{"the others' work counts as ours", time.Millisecond, 200 * time.Microsecond, 0.02, 400 * time.Microsecond},
		{"a clock that stands does not make calls free", time.Millisecond, 0, 0, 50 * time.Microsecond},
	} {
		m := &meter{scale: 1}
		got := rounds(m, 20, 100, c.est, c.cost, c.other)
		if math.Abs(float64(got-c.want)) > 0.05*float64(c.want) {
			t.Errorf("%s: booked %s, want %s", c.name, got, c.want)
		}
	}
}

// Never less is booked than the calls cost, whatever the others do.
func TestMeterNeverBooksLessThanTheCost(t *testing.T) {
	t.Parallel()
	m := &meter{scale: 1}
	for _, other := range []float64{0, 0.5, 0.01, 0, 0.9, 0, 0.001} {
		if got := rounds(m, 5, 200, 800*time.Microsecond, 150*time.Microsecond, other); got < 149*time.Microsecond {
			t.Errorf("beside %g: booked %s of 150µs", other, got)
		}
	}
}

func TestMeterBearsOddReadings(t *testing.T) {
	t.Parallel()
	m := &meter{scale: 1}
	rounds(m, 5, 100, time.Millisecond, 200*time.Microsecond, 0)
	low := m.scale
	now := m.at
	m.estimate(time.Second)
	m.read(now.Add(time.Minute), m.cpu+0.001, -1) // we slept
	if m.scale != low {
		t.Errorf("scale %g after a pause, want %g", m.scale, low)
	}
	m.estimate(time.Second)
	m.read(now.Add(time.Minute+meterEvery), 0.5, -1) // another process
	if m.scale != low {
		t.Errorf("scale %g after a restart, want %g", m.scale, low)
	}
	m.estimate(time.Second)
	m.read(now.Add(time.Minute+2*meterEvery), -1, -1)
	if m.scale != 1 {
		t.Errorf("scale %g where the server does not tell, want 1", m.scale)
	}
}

func TestMeterTellsHowBusyTheThreadIs(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	m := &meter{scale: 1}
	for _, c := range []struct {
		after     time.Duration
		cpu, main float64
		want      float64
	}{
		{0, 90, 50, 0}, // nothing to compare with
		{time.Second, 90.5, 50.5, 0.5},
		{2 * time.Second, 93, 52.4, 0.95},
		{time.Second, 94, -1, 0}, // not told
		{time.Second, 95, 54, 0},
		{time.Second, 1, 0.5, 0}, // another process
		{time.Second, 2, 1.4, 0.9},
	} {
		now = now.Add(c.after)
		m.read(now, c.cpu, c.main)
		if math.Abs(m.busy-c.want) > 1e-9 {
			t.Errorf("busy %g at cpu %g, main %g; want %g", m.busy, c.cpu, c.main, c.want)
		}
	}
}
