package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/recording"
	"github.com/locksteward/locksteward/internal/scan"
)

type rulesTestFlags struct {
	config string
	expect string
	failOn severityFlag
	output outputFlag
	lang   string
}

func rulesTestCommand(p *program) *cobra.Command {
	var f rulesTestFlags
	c := &cobra.Command{
		Use:   "test FILE",
		Short: "Evaluate the rules on a recording, without a server",
		Long: `Test reads a recording of 'locksteward scan --record FILE' and evaluates the rules on
it, reading by reading, with their defaults or with a configuration. Only classes,
rules and redlock of the configuration are used; the masters of a Redlock are the
targets of the recording.

With --expect it compares the pending and firing findings at the end with a file: the
output of an earlier 'rules test --output json', or the part of it that matters
({"findings": [{"rule": "ttl/none", "key": "lock:a"}]}). Exit codes: 0 done,
1 not as expected, 3 findings at or above --fail-on.`,
		Example: `  locksteward scan URL --observe 30s --record locks.jsonl
  locksteward rules test locks.jsonl --config locksteward.yaml
  locksteward rules test locks.jsonl --config locksteward.yaml --expect want.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runRulesTest(cmd.Context(), p, args[0], f) },
	}
	configFlag(c, &f.config)
	c.Flags().StringVar(&f.expect, "expect", "", "JSON file with exactly the findings expected at the end")
	c.Flags().Var(&f.failOn, "fail-on", "exit with 3 if anything at or above info, warning or critical fires at the end")
	langFlag(c, &f.lang)
	f.output.register(c)
	return c
}

func runRulesTest(ctx context.Context, p *program, file string, f rulesTestFlags) error {
	if err := checkLang(f.lang); err != nil {
		return err
	}
	by, err := loadRules(f.config)
	if err != nil {
		return err
	}
	var want *expectation
	if f.expect != "" {
		if want, err = readExpectation(f.expect); err != nil {
			return err
		}
	}
	in, err := os.Open(file)
	if err != nil {
		return usagef("read recording: %w; record one with 'locksteward scan --record FILE'", err)
	}
	defer in.Close()
	progress := newProgress(p.stderr)
	replayed, err := recording.Replay(counted(ctx, recording.Read(in), progress), by.Rules, by.Classes, by.Redlock)
	progress.done()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	out := newRulesTest(file, replayed, f.lang)
	if want != nil {
		out.Mismatches = want.compare(out.Findings)
	}
	if f.output.data() {
		err = f.output.encode(p.stdout, out)
	} else {
		err = writeRulesTest(p.stdout, out, f.config)
	}
	if err != nil {
		return err
	}
	var mismatch error
	if len(out.Mismatches) > 0 {
		mismatch = fmt.Errorf("not as %s expects:\n%s", f.expect, strings.Join(out.Mismatches, "\n"))
	}
	return failOn(f.failOn, out.Findings, mismatch)
}

// counted tells how many locks were judged so far, and ends early with ctx.
func counted(ctx context.Context, looks iter.Seq2[recording.Look, error], p *progress) iter.Seq2[recording.Look, error] {
	return func(yield func(recording.Look, error) bool) {
		var locks int64
		for look, err := range looks {
			if ctx.Err() != nil {
				yield(recording.Look{}, context.Cause(ctx))
				return
			}
			if !yield(look, err) {
				return
			}
			locks += int64(len(look.Sweep.Locks))
			p.update(func(time.Time) string { return fmt.Sprintf("judged %d locks", locks) })
		}
	}
}

func newRulesTest(file string, r recording.Replayed, lang string) api.RulesTest {
	out := api.RulesTest{
		File: file, Looks: r.Looks, Locks: r.Locks, From: r.From.UTC().Truncate(time.Millisecond), To: r.To.UTC().Truncate(time.Millisecond),
		Transitions: []api.RulesTransition{}, Findings: api.NewFindings(r.Findings, lang), Dead: []api.RulesDead{},
	}
	for _, t := range r.Transitions {
		out.Transitions = append(out.Transitions, api.NewRulesTransition(t, lang))
	}
	for _, d := range r.Dead {
		out.Dead = append(out.Dead, api.NewRulesDead(d.Lock, d.Because))
	}
	return out
}

func writeRulesTest(w io.Writer, out api.RulesTest, config string) error {
	if out.Looks == 0 {
		_, err := fmt.Fprintf(w, "%s has no look: nothing to judge\n", out.File)
		return err
	}
	with := "the rules at their defaults"
	if config != "" {
		with = "the classes and rules of " + config
	}
	fmt.Fprintf(w, "%s and %s over %s, judged by %s\n", plural.Count(out.Looks, "look"), plural.Count(out.Locks, "lock"), span(out.To.Sub(out.From)), with)
	if len(out.Transitions) > 0 {
		fmt.Fprintln(w)
		var rows [][]string
		for _, t := range out.Transitions {
			subject := cellKey(t.Key)
			if subject == "" {
				subject = "class " + t.Class
			}
			rows = append(rows, []string{"+" + span(t.At.Sub(out.From)), t.Status, t.Severity, t.Rule, subject})
		}
		if err := writeTable(w, []string{"AT", "STATUS", "SEVERITY", "RULE", "KEY"}, rows); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	if len(out.Findings) == 0 {
		fmt.Fprintln(w, "no findings at the end")
	} else if err := writeFindings(w, out.Findings); err != nil {
		return err
	}
	for i, d := range out.Dead {
		if i == 0 {
			fmt.Fprintln(w, "\na release would be proposed for")
		}
		fmt.Fprintf(w, "  %s (class %s): %s\n", cellKey(d.Key), d.Class, oneLine(strings.Join(d.DeadWhen, "; ")))
	}
	return nil
}

// failOn is the exit code's reason: what fires at or above the severity beats
// other, the reason that there is without it.
func failOn(limit severityFlag, findings []api.Finding, other error) error {
	if !limit.set {
		return other
	}
	n := 0
	for _, f := range findings {
		severity, err := locksteward.ParseSeverity(f.Severity)
		if err != nil {
			return fmt.Errorf("finding %s: %w", f.Fingerprint, err)
		}
		if severity >= limit.value && f.Status == string(locksteward.StatusFiring) && f.Baseline != api.BaselineKnown {
			n++
		}
	}
	if n == 0 {
		return other
	}
	return &findingsError{count: n, failOn: limit.value, partial: other}
}

// expectation is the file of --expect. A field that is left out matches
// anything.
type expectation struct {
	Findings *[]expectedFinding `json:"findings"`
}

type expectedFinding struct {
	Rule     string  `json:"rule"`
	Status   *string `json:"status"`
	Severity *string `json:"severity"`
	Target   *string `json:"target"`
	DB       *int    `json:"db"`
	Key      *string `json:"key"`
	Class    *string `json:"class"`
}

func readExpectation(file string) (*expectation, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("--expect: %w", err)
	}
	var e expectation
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, usagef("--expect: %s: %w; write the output of 'rules test --output json', or a part of it", file, err)
	}
	if e.Findings == nil {
		return nil, usagef(`--expect: %s has no "findings"; write [] if there must be none`, file)
	}
	for i, f := range *e.Findings {
		if f.Rule == "" {
			return nil, usagef("--expect: %s: findings[%d].rule is missing, write the rule's id", file, i)
		}
	}
	return &e, nil
}

// compare lists what is missing and what is too much.
func (e *expectation) compare(findings []api.Finding) []string {
	left := slices.Clone(findings)
	var out []string
	for _, want := range *e.Findings {
		i := slices.IndexFunc(left, want.matches)
		if i < 0 {
			out = append(out, "missing: "+want.String())
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, f := range left {
		subject := showKey(f.Key)
		if subject == "" {
			subject = "class " + f.Class
		}
		out = append(out, fmt.Sprintf("not expected: %s %s %s %s", f.Rule, f.Status, f.Severity, subject))
	}
	return out
}

func (e expectedFinding) matches(f api.Finding) bool {
	return e.Rule == f.Rule && same(e.Status, f.Status) && same(e.Severity, f.Severity) && same(e.Target, f.Target) &&
		same(e.DB, f.DB) && same(e.Key, f.Key.Key) && same(e.Class, f.Class)
}

func same[T comparable](want *T, got T) bool { return want == nil || *want == got }

// String names what is expected.
func (e expectedFinding) String() string {
	parts := []string{e.Rule}
	for _, p := range []*string{e.Status, e.Severity, e.Target, e.Key, e.Class} {
		if p != nil && *p != "" {
			parts = append(parts, oneLine(*p))
		}
	}
	return strings.Join(parts, " ")
}

// recorder writes the looks of a scan into a file.
type recorder struct {
	file   *os.File
	writer *recording.Writer
}

// newRecorder creates the file of --record; "" is nobody.
func newRecorder(name string) (*recorder, error) {
	if name == "" {
		return nil, nil
	}
	file, err := createNew("--record", name)
	if err != nil {
		return nil, err
	}
	w, err := recording.NewWriter(file, "locksteward "+thisBuild().Version, time.Now())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &recorder{file, w}, nil
}

// record has a scan recorded; a nil recorder records nothing.
func (r *recorder) record(opts *scan.Options) {
	if r == nil {
		return
	}
	opts.Record = func(s locksteward.Sweep) error { return r.writer.Write(recording.Look{Sweep: s}) }
	opts.RecordUpdate = func(u locksteward.Update) error { return r.writer.Write(recording.OfUpdate(u)) }
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}
