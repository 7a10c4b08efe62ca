package scan

import (
	"context"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/initcfg"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/report"
)

// Propose scans for opts.Observe and groups what it saw into families of at least
// least keys or holds.
func Propose(ctx context.Context, opts Options, least int) (initcfg.Plan, error) {
	gathered := initcfg.NewCollector(TargetName(opts.Connect.URL))
	record := opts.Record
	opts.Record = func(s locksteward.Sweep) error {
		gathered.AddSweep(s)
		if record != nil {
			return record(s)
		}
		return nil
	}
	recordUpdate := opts.RecordUpdate
	opts.RecordUpdate = func(u locksteward.Update) error {
		gathered.AddUpdate(u)
		if recordUpdate != nil {
			return recordUpdate(u)
		}
		return nil
	}
	if _, err := Run(ctx, opts); err != nil {
		return initcfg.Plan{}, err
	}
	return initcfg.Propose(gathered.Seen(), least), nil
}

// Report scans for opts.Observe and says how locks were held meanwhile, by the
// families that their names make; only leaves all others out unless it is "".
func Report(ctx context.Context, opts Options, only string) (api.Report, error) {
	plan, err := Propose(ctx, opts, 1)
	if err != nil {
		return api.Report{}, err
	}
	rows, open, set, err := plan.Reports("")
	if err != nil {
		return api.Report{}, err
	}
	for i := range open {
		open[i].Target = ""
	}
	seen := plan.Seen
	in := report.Input{Since: millis(seen.From), Until: millis(seen.To), Rows: rows, Open: open, Classes: set, OnlyClass: only}
	in.Notes = append(in.Notes, fmt.Sprintf("%s in %s: what was held for less than a moment between two of them is not in it",
		plural.Count(seen.Sweeps, "sweep"), report.Show(seen.To.Sub(seen.From))))
	if seen.Sweeps < 2 {
		in.Notes = append(in.Notes, "one sweep sees no hold end: look for longer with --observe")
	}
	if seen.Incomplete != "" {
		in.Notes = append(in.Notes, "the last sweep was not complete: "+seen.Incomplete)
	}
	if seen.Dropped > 0 {
		in.Notes = append(in.Notes, fmt.Sprintf("%d holds more ended than could be kept: they are not in it", seen.Dropped))
	}
	if _, known := set.Get(only); only != "" && !known {
		return api.Report{}, fmt.Errorf("%w: no locks of a class %q were seen; leave --class out to see which there are", locksteward.ErrNotFound, only)
	}
	return report.Build(in), nil
}

func millis(t time.Time) time.Time { return t.Truncate(time.Millisecond) }
