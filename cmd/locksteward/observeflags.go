package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// observeFlags are how a command without an agent looks at a server.
type observeFlags struct {
	match   []string
	observe time.Duration
	pace    string
	on      string
}

// The values of --pace: see docs/pace.md.
const (
	paceDefault   = "default"
	paceUnlimited = "unlimited"
)

// observeFlagNames are their names, for a command in which they need a URL.
var observeFlagNames = []string{"match", "observe", "pace", "sweep-on"}

// register adds the flags; in says where they count, for their help, and long for
// how long it observes by default.
func (f *observeFlags) register(c *cobra.Command, in string, long time.Duration, why string) {
	flags := c.Flags()
	flags.StringArrayVar(&f.match, "match", nil, in+"treat keys that match this glob as locks of a class (may be repeated)")
	flags.DurationVar(&f.observe, "observe", long, in+why)
	flags.StringVar(&f.pace, "pace", paceDefault, in+"default (follows the load of the server) or unlimited (for a server of your own)")
	_ = c.RegisterFlagCompletionFunc("pace", cobra.FixedCompletions([]string{paceDefault, paceUnlimited}, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&f.on, "sweep-on", string(redis.SweepMasters), in+"read key names from masters or replicas; locks are always read from masters")
	_ = c.RegisterFlagCompletionFunc("sweep-on", cobra.FixedCompletions(
		[]string{string(redis.SweepMasters), string(redis.SweepReplicas)}, cobra.ShellCompDirectiveNoFileComp))
}

// options returns how to look at the server of conn. Who uses them ends with
// progress.done().
func (f *observeFlags) options(p *program, conn connect.Config) (scan.Options, *progress, error) {
	on := redis.SweepOn(f.on)
	if on != redis.SweepMasters && on != redis.SweepReplicas {
		return scan.Options{}, nil, usagef("--sweep-on: got %q, write masters or replicas", f.on)
	}
	if f.pace != paceDefault && f.pace != paceUnlimited {
		return scan.Options{}, nil, usagef("--pace: got %q, write default or unlimited", f.pace)
	}
	if f.observe < 0 {
		return scan.Options{}, nil, usagef("--observe: got %s, write a positive duration such as 30s", f.observe)
	}
	shown, began := newProgress(p.stderr), time.Now()
	return scan.Options{
		Connect: conn, Match: f.match, Observe: f.observe, NoThrottle: f.pace == paceUnlimited, SweepOn: on, Progress: func(sweep scanner.Progress) {
			switch observed := time.Since(began); {
			case observed < f.observe:
				shown.update(func(time.Time) string {
					return fmt.Sprintf("observing: %s of %s", observed.Truncate(time.Second), f.observe)
				})
			case !sweep.Started.IsZero() && (f.observe == 0 || time.Since(sweep.Started) > time.Second):
				shown.update(func(now time.Time) string { return progressWords(sweep, now) })
			}
		},
		Warn: func(sentence string) {
			shown.done()
			fmt.Fprintln(p.stderr, "locksteward: warning:", oneLine(sentence))
		},
	}, shown, nil
}
