package targets

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// survey is the first look at a target: what it finds was there before anybody
// watched, and is told at once (alert.first_survey).
type survey struct {
	// until is the server's time at the end of the first complete sweep, or of the
	// second one that answered; zero while there was none.
	until time.Time
	// kept says that the store has it.
	kept bool
	// parts is how many sweeps answered and were not complete.
	parts int
}

// surveyParts is after how many sweeps a first survey ends that none could complete:
// one node of a Cluster may be away for good.
const surveyParts = 2

// surveySetting names what the store keeps of a target's first survey.
func surveySetting(target string) string { return "surveyed:" + target }

// restoreSurvey reads whether the target was swept before; known says that
// something of it is stored in any case.
func (w *Watched) restoreSurvey(ctx context.Context, known bool) {
	value, err := w.deps.Store.LoadSetting(ctx, surveySetting(w.target.Name))
	if err != nil {
		w.log.Error("it is not known whether the target was swept before", zap.Error(err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if us, err := strconv.ParseInt(value, 10, 64); err == nil {
		w.survey = survey{until: time.UnixMicro(us), kept: true}
	} else if known {
		w.survey.until = time.UnixMicro(1) // it was swept before, only the time is not known: nothing is new
	}
}

// endSurvey notes the end of the first survey, which is before the sweep is judged:
// what that finds began in it at the latest. The caller holds w.mu.
func (w *Watched) endSurvey(ctx context.Context, sweep locksteward.Sweep) {
	if w.survey.until.IsZero() {
		if !sweep.Complete() && w.scanner.State().Up {
			w.survey.parts++
		}
		if sweep.Complete() || w.survey.parts >= surveyParts {
			w.survey.until = sweep.At
		}
	}
	if w.survey.kept || w.survey.until.IsZero() {
		return
	}
	defer w.calls.Begin()()
	if err := w.deps.Store.WakeGroup(context.WithoutCancel(ctx), alert.SurveyGroup(w.target.Name), alert.SurveyWait); err != nil {
		w.log.Warn("the digest of the first survey is not hurried yet: it is tried again", zap.Error(err))
		return
	}
	value := strconv.FormatInt(w.survey.until.UnixMicro(), 10)
	if err := w.deps.Store.SaveSetting(context.WithoutCancel(ctx), surveySetting(w.target.Name), value); err != nil {
		w.log.Warn("the end of the first survey is not kept yet", zap.Error(err))
		return
	}
	w.survey.kept = true
}

// surveying says whether the first survey of the target found f, and for how long it has been under way, negative once
// it has ended. The caller holds w.mu.
func (w *Watched) surveying(f locksteward.Finding) (found bool, running time.Duration) {
	running = -1
	if w.survey.until.IsZero() {
		running = time.Since(w.began)
	}
	return w.surveyed(f), running
}

// surveyed says that the first survey of the target found f, on a hold that may have been there
// before the agent. The caller holds w.mu.
func (w *Watched) surveyed(f locksteward.Finding) bool {
	until := w.survey.until
	late := !until.IsZero() && f.Since.After(until)
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	if f.Key == "" || !ok {
		return !late
	}
	if late && (l.History.FirstSeen.After(until) || f.Since.After(until.Add(surveySettles))) {
		return false
	}
	offset, known := w.scanner.Table().ClockOffset(l.Node)
	return !known || !bornAfter(l, w.began.Add(offset))
}

// surveySettles is how long after the first sweep a lock that it found may be judged by a later look: the watch is set up
// anew for the prefixes of the locks then, and reads them all.
const surveySettles = 2 * time.Second

// bornMargin is the error of a comparison of two clocks.
const bornMargin = time.Second

// bornAfter says that a hold provably began after start, by the server's clock: its holder wrote when.
func bornAfter(l locksteward.Lock, start time.Time) bool {
	return l.Claim != nil && l.Claim.Acquired.After(start.Add(bornMargin))
}
