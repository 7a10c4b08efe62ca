package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/scanner"
)

type scanFlags struct {
	server serverFlags
	look   observeFlags
	record string
	failOn severityFlag
	known  baselineFlags
	output outputFlag
	lang   string
	all    bool
}

func scanCommand(p *program) *cobra.Command {
	var f scanFlags
	c := &cobra.Command{
		Use:   "scan [URL]",
		Short: "Audit the locks of a server once, without an agent",
		Long: `Scan reads every key name of a server once, reads those that are locks, and reports
which are stuck or about to be. It needs no configuration, writes nothing, and adapts
its pace to the load of the server (--pace).

Data goes to stdout, progress to stderr. Exit codes: 0 done, 1 the scan is
incomplete, 3 findings at or above --fail-on.`,
		Example: `  locksteward scan redis://127.0.0.1:6379/0
  locksteward scan redis+cluster://a:7000,b:7000 --match 'lock:*' --output json
  locksteward scan rediss://r:6380 --server-password-file pw --fail-on critical
  locksteward scan redis://127.0.0.1 --baseline accepted.json --fail-on warning`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runScan(cmd.Context(), p, f) },
	}
	f.server.register(c, storeForms)
	f.look.register(c, "", 0, "keep reading for this long, to see renewals (default: read once)")
	c.Flags().StringVar(&f.record, "record", "", "record the readings to this new file, for 'rules test': tokens as digests, names in clear")
	c.Flags().Var(&f.failOn, "fail-on", "exit with 3 if findings at or above this severity fire: info, warning or critical")
	c.Flags().StringVar(&f.lang, "lang", "en", "language of findings: en or zh")
	c.Flags().BoolVar(&f.all, "all", false, "list the healthy locks as well")
	f.known.register(c)
	f.output.register(c)
	return c
}

func runScan(ctx context.Context, p *program, f scanFlags) error {
	conn, err := f.server.config()
	if err != nil {
		return err
	}
	if f.lang != "en" && f.lang != "zh" {
		return usagef("--lang: got %q, write en or zh", f.lang)
	}
	known, err := f.known.read()
	if err != nil {
		return err
	}
	opts, progress, err := f.look.options(p, conn)
	if err != nil {
		return err
	}
	record, err := newRecorder(f.record)
	if err != nil {
		return err
	}
	record.record(&opts)
	result, err := scan.Run(ctx, opts)
	progress.done()
	interrupted := err != nil && ctx.Err() != nil && len(result.Sweep.Masters) > 0
	if failed := record.close(); err != nil && !interrupted || failed != nil {
		return errors.Join(err, failed)
	}
	if result.TooManyRights != "" {
		fmt.Fprintln(p.stderr, "locksteward: warning:", result.TooManyRights)
	}
	out := api.NewScan(result.Sweep, result.Findings, f.lang)
	server, url := f.server.words(conn)
	if scan.TargetName(conn.URL) == string(lockstore.Redis) {
		addUnlockLines(&out, result, server, url)
	}
	if interrupted {
		out.Complete = false
	} else if err := f.known.apply(p, &out, known); err != nil {
		return err
	}
	if f.output.data() {
		err = f.output.encode(p.stdout, out)
	} else {
		err = writeScan(p.stdout, out, f.all)
	}
	if err != nil {
		return err
	}
	if interrupted {
		return ctx.Err()
	}
	return scanVerdict(out, f.failOn)
}

// scanVerdict is the exit code's reason. Pending findings do not count: they
// were not true for long enough to fire.
func scanVerdict(out api.Scan, limit severityFlag) error {
	var incomplete error
	if !out.Complete {
		reasons := make([]string, 0, len(out.Incomplete))
		for _, m := range out.Incomplete {
			reasons = append(reasons, m.Node+": "+m.Reason)
		}
		incomplete = fmt.Errorf("the scan is incomplete: %s", strings.Join(reasons, "; "))
	}
	return failOn(limit, out.Findings, incomplete)
}

// writeScan shows the findings, the locks that they are about, and in the last line what
// was scanned; with all the healthy locks, too.
func writeScan(w io.Writer, out api.Scan, all bool) error {
	if len(out.Findings) > 0 {
		if err := writeFindings(w, out.Findings); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	listed := out.Locks
	if !all {
		listed = slices.DeleteFunc(slices.Clone(listed), func(l api.Lock) bool { return len(l.Findings) == 0 })
	}
	if len(listed) > 0 {
		if err := writeLocks(w, listed, false); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if err := writeGone(w, out.BaselineGone); err != nil {
		return err
	}
	for _, m := range out.OnReplicas {
		fmt.Fprintf(w, "keys of %s by its replica %s, as of replication offset %d\n\n", m.Node, m.Replica, m.AsOfOffset)
	}
	return writeText(w, scanWords(out, len(out.Locks)-len(listed))+"\n")
}

// scanWords says what was scanned and what came of it; unlisted are the healthy locks that
// are not shown.
func scanWords(out api.Scan, unlisted int) string {
	looks := "look healthy"
	if !out.Complete {
		looks = "that were read look healthy"
	}
	words := ""
	switch found := len(out.Locks) - unlisted; {
	case len(out.Locks) == 0:
		words = "no locks"
	case len(out.Findings) == 0 && unlisted > 0:
		words = fmt.Sprintf("no findings: all %s %s (--all lists them)", plural.Count(len(out.Locks), "lock"), looks)
	case len(out.Findings) == 0:
		words = fmt.Sprintf("no findings: all %s %s", plural.Count(len(out.Locks), "lock"), looks)
	case unlisted > 0:
		words = fmt.Sprintf("%s with findings and %d without (--all lists them)", plural.Count(found, "lock"), unlisted)
	default:
		words = plural.Count(len(out.Locks), "lock")
	}
	words += fmt.Sprintf("; %s read in %s", plural.Count(out.KeysScanned, "name"), span(time.Duration(out.DurationMs)*time.Millisecond))
	if !out.Complete {
		words += ", INCOMPLETE"
	}
	if out.Candidates > 0 {
		words += fmt.Sprintf("; %s (select them with --match)", map[bool]string{true: "1 name looks like a lock", false: fmt.Sprint(out.Candidates) + " names look like locks"}[out.Candidates == 1])
	}
	return words
}

// writeGone tells what the baseline has and the scan has not.
func writeGone(w io.Writer, gone []api.BaselineFinding) error {
	if len(gone) == 0 {
		return nil
	}
	fmt.Fprintf(w, "in the baseline, but not found (--update-baseline removes them):\n")
	for _, f := range gone {
		subject := showSubject(f.Key, f.Class, "")
		if _, err := fmt.Fprintf(w, "  %s  %s  accepted %s\n", oneLine(f.Rule), subject, oneLine(f.Accepted)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// severityFlag is --fail-on.
type severityFlag struct {
	value locksteward.Severity
	set   bool
}

// String returns the severity, "" when unset.
func (s *severityFlag) String() string {
	if !s.set {
		return ""
	}
	return s.value.String()
}

// Type names the flag's type in help.
func (s *severityFlag) Type() string { return "severity" }

// Set parses a severity.
func (s *severityFlag) Set(text string) error {
	value, err := locksteward.ParseSeverity(text)
	if err != nil {
		return errors.New("got " + text + ", write info, warning or critical")
	}
	s.value, s.set = value, true
	return nil
}

// progress shows how far a long scan is: on a terminal in one line after a second, elsewhere
// in a line a minute. It is used by one goroutine at a time.
type progress struct {
	w        io.Writer
	terminal bool
	next     time.Time // when the next line is due
	shown    bool      // a line stands on the terminal
}

// progressLines is the time between two lines where there is no terminal.
const progressLines = time.Minute

func newProgress(w io.Writer) *progress {
	file, ok := w.(*os.File)
	p := &progress{w: w, terminal: ok && isTerminal(file), next: time.Now().Add(progressLines)}
	if p.terminal {
		p.next = time.Now().Add(time.Second)
	}
	return p
}

// update shows what words say, if a line is due.
func (p *progress) update(words func(now time.Time) string) {
	now := time.Now()
	switch {
	case now.Before(p.next):
	case p.terminal:
		p.shown = true
		fmt.Fprintf(p.w, "\rlocksteward: %s\x1b[K", words(now))
	default:
		p.next = now.Add(progressLines)
		fmt.Fprintf(p.w, "locksteward: %s\n", words(now))
	}
}

// progressWords is how far a sweep is: "43 % of 1010000 keys in 3s, 144000 keys/s, about 4s left".
func progressWords(sweep scanner.Progress, now time.Time) string {
	took := now.Sub(sweep.Started)
	words := plural.Count(sweep.Keys, "key")
	if percent, ok := sweep.Percent(); ok {
		words = fmt.Sprintf("%d %% of %s", percent, plural.Count(sweep.OfKeys, "key"))
	}
	words += " in " + span(took)
	if took >= time.Second {
		words += fmt.Sprintf(", %.0f keys/s", float64(sweep.Keys)/took.Seconds())
	}
	if left, ok := sweep.Left(now); ok {
		words += ", about " + span(left.Round(time.Second)) + " left"
	}
	return words
}

func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
