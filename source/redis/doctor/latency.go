package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward/source/redis/connect"
)

const (
	pings = 60
	// slowTail is a p99 from which on pushes and reads come late enough to matter.
	slowTail = 20 * time.Millisecond
	// Offsets of the server's clock from ours.
	someOffset, wrongClock = time.Second, 5 * time.Minute
)

func (e *exam) latency(ctx context.Context, m connect.Master) {
	var trips []time.Duration
	cn := m.Client.Conn()
	defer func() { _ = cn.Close() }()
	if err := cn.Ping(ctx).Err(); err != nil { // opens the connection
		e.report.add("latency", Fail, m.Addr, "does not answer", connect.Explain(err))
		return
	}
	for range pings {
		began := time.Now()
		if err := cn.Ping(ctx).Err(); err != nil {
			e.report.add("latency", Fail, m.Addr, "stopped to answer", connect.Explain(err))
			return
		}
		trips = append(trips, time.Since(began))
	}
	slices.Sort(trips)
	e.quick[m.Addr] = trips[0]
	p50, p99 := trips[len(trips)/2], trips[len(trips)*99/100]
	found := fmt.Sprintf("PING p50 %s, p99 %s", round(p50), round(p99))
	if p99 > slowTail {
		e.report.add("latency", Warn, m.Addr, found, "look for load, fork pauses or a long way; a locker's TTL must cover many round trips")
	} else {
		e.report.add("latency", OK, m.Addr, found, "")
	}
	e.clock(ctx, m)
}

// clock compares the server's time with ours, give or take half a round trip.
func (e *exam) clock(ctx context.Context, m connect.Master) {
	began := time.Now()
	at, err := m.Client.Time(ctx).Result()
	if err != nil {
		e.report.add("clock", Warn, m.Addr, "the server does not tell its time", connect.Explain(err))
		return
	}
	trip := time.Since(began)
	offset := at.Sub(began.Add(trip / 2))
	way := "ahead of"
	if offset < 0 {
		way = "behind"
	}
	size := offset.Abs()
	found := fmt.Sprintf("the server's clock is %s %s ours, ± %s", round(size), way, round(trip/2))
	const todo = "run NTP on both machines: TTLs follow the server's clock, what holders claim and the audit trail follow others"
	switch {
	case size >= wrongClock:
		e.report.add("clock", Fail, m.Addr, found, todo)
	case size >= someOffset:
		e.report.add("clock", Warn, m.Addr, found, todo)
	default:
		e.report.add("clock", OK, m.Addr, found, "")
	}
}
