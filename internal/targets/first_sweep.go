package targets

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// firstSweep says until when findings of a target count as found by its first sweep, which are sent as one digest
// (alert.first_sweep).
type firstSweep struct {
	// until is the server's time at the end of the first complete sweep, or of the
	// second one that answered; zero while there was none.
	until time.Time
	// kept says that the store has it.
	kept bool
	// parts is how many sweeps answered and were not complete.
	parts int
}

// maxPartialSweeps is after how many sweeps a first sweep ends that none could complete:
// one node of a Cluster may be away for good.
const maxPartialSweeps = 2

// firstSweepSetting names what the store keeps of a target's first sweep.
func firstSweepSetting(target string) string { return "first_sweep:" + target }

// restoreFirstSweep reads whether the target was swept before; known says that
// something of it is stored in any case.
func (w *Watched) restoreFirstSweep(ctx context.Context, known bool) {
	value, err := w.deps.Store.LoadSetting(ctx, firstSweepSetting(w.target.Name))
	if err != nil {
		w.log.Error("it is not known whether the target was swept before", zap.Error(err))
	}
	defer w.turn.take()()
	if us, err := strconv.ParseInt(value, 10, 64); err == nil {
		w.firstSweep = firstSweep{until: time.UnixMicro(us), kept: true}
	} else if known {
		w.firstSweep.until = time.UnixMicro(1) // it was swept before, only the time is not known: nothing is new
	}
}

// endFirstSweep notes the end of the first sweep, which is before the sweep is judged:
// what that finds began in it at the latest.
func (w *Watched) endFirstSweep(sweep locksteward.Sweep) {
	defer w.turn.take()()
	if !w.firstSweep.until.IsZero() {
		return
	}
	if !sweep.Complete() && w.scanner.State().Up {
		w.firstSweep.parts++
	}
	if sweep.Complete() || w.firstSweep.parts >= maxPartialSweeps {
		w.firstSweep.until = sweep.At
	}
}

// keepFirstSweep writes the end of the first sweep, unless the store has it. Only sweeps call it.
func (w *Watched) keepFirstSweep(ctx context.Context) {
	endTurn := w.turn.take()
	kept, until := w.firstSweep.kept, w.firstSweep.until
	endTurn()
	if kept || until.IsZero() {
		return
	}
	if err := w.deps.Store.WakeGroup(context.WithoutCancel(ctx), alert.FirstSweepGroup(w.target.Name), alert.FirstSweepWait); err != nil {
		w.log.Warn("the digest of the first sweep is not hastened yet: it is tried again", zap.Error(err))
		return
	}
	value := strconv.FormatInt(until.UnixMicro(), 10)
	if err := w.deps.Store.SaveSetting(context.WithoutCancel(ctx), firstSweepSetting(w.target.Name), value); err != nil {
		w.log.Warn("the end of the first sweep is not kept yet", zap.Error(err))
		return
	}
	defer w.turn.take()()
	w.firstSweep.kept = true
}

// inFirstSweep says whether the first sweep of the target found f, and for how long it has been under way, negative once
// it has ended. The caller has the turn.
func (w *Watched) inFirstSweep(f locksteward.Finding) (found bool, running time.Duration) {
	running = -1
	if w.firstSweep.until.IsZero() {
		running = time.Since(w.began)
	}
	return w.foundByFirstSweep(f), running
}

// foundByFirstSweep says that the first sweep of the target found f, on a hold that may have been there
// before the agent. The caller has the turn.
func (w *Watched) foundByFirstSweep(f locksteward.Finding) bool {
	until := w.firstSweep.until
	late := !until.IsZero() && f.Since.After(until)
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	if f.Key == "" || !ok {
		return !late
	}
	if late && (l.History.FirstSeen.After(until) || f.Since.After(until.Add(settleAfterFirstSweep))) {
		return false
	}
	offset, known := w.scanner.Table().ClockOffset(l.Node)
	return !known || !bornAfter(l, w.began.Add(offset))
}

// settleAfterFirstSweep is how long after the first sweep a lock that it found may be judged by a later look: the watch is set up
// anew for the prefixes of the locks then, and reads them all.
const settleAfterFirstSweep = 2 * time.Second

// bornMargin is the error of a comparison of two clocks.
const bornMargin = time.Second

// bornAfter says that a hold provably began after start, by the server's clock: its holder wrote when.
func bornAfter(l locksteward.Lock, start time.Time) bool {
	return l.Claim != nil && l.Claim.Acquired.After(start.Add(bornMargin))
}
