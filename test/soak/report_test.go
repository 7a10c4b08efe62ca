package soak_test

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// write writes the report where that is wanted.
func (r *run) write(wrong []string) {
	r.t.Helper()
	if *page == "" {
		return
	}
	if err := os.WriteFile(*page, []byte(r.report(wrong)), 0o644); err != nil {
		r.t.Error(err)
	}
}

// report is docs/soak.md.
func (r *run) report(wrong []string) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	ops := r.load.operations()
	say("# Soak\n")
	say("What half an hour of work and faults does to two agents. Written by `make soak`; do not edit.\n")
	say("## The run\n")
	say("- Machine: %s.", machine())
	say("- Load average at the samples: %s. One machine has all of it.", r.loads())
	some, none := formatNames(r.t, r.load.layouts)
	say("- Begun %s UTC, %s of load. %d locks of %d layouts of %d libraries stand all the time (written in %s), one in five of them renewed.",
		r.all.began.UTC().Format("2006-01-02 15:04"), r.took.Round(time.Second), *locks, len(r.load.layouts), len(some), r.filled.Round(time.Second))
	say("  The most that an agent had in its table: %.0f. Without locks of %s.", r.most, strings.Join(none, ", "))
	say("- Redis Cluster: three masters with a replica each; one target, a sweep every %s", r.schedule)
	say("  (`pace: {idle: 80%%, busy: 80%%}`). First sweep after %s.", short(r.first))
	say("- Operations: %d offered a second, **%.0f succeeded** (while a master is away its locks cannot be had): %d locks taken, %d renewed, %d freed in the layouts of other libraries, %d acquires and releases by lock/;",
		*rate, float64(ops)/r.took.Seconds(), r.load.sets.Load(), r.load.renewals.Load(), r.load.deletes.Load(), r.load.holds.Load())
	say("  %d failed, while a master was away.\n", r.load.failed.Load())
	say("## Verdict\n")
	if len(wrong) == 0 {
		say("Passed.\n")
	} else {
		say("**Failed:**\n")
		for _, w := range wrong[:min(len(wrong), 20)] {
			say("- %s", w)
		}
		say("")
	}
	broken := len(r.broken.names) + len(r.people.names)
	say("| what | figure |\n| --- | --- |")
	say("| broken locks of which people had to be reported | %d |", broken)
	say("| fires or ends lost | %d |", r.lost)
	say("| ends reported before their fire | %d |", r.reversed)
	say("| from break to fire, p50 / p99 / longest | %s |", quantiles(r.broken.fire))
	say("| from freed to its end reported | %s |", quantiles(r.broken.end))
	say("| the longest delay of the watch that an agent reported | %s |", r.delay.Round(10*time.Millisecond))
	say("| broken locks that a failover took before anybody saw them | %d |", r.broken.swallowed)
	say("| deletes that a failover undid | %d |", r.broken.back)
	say("| broken locks that an agent released (`release: auto`), did not in time | %d, %d; requests by state: %s |", r.broken.freed, r.broken.left, counts(r.requests))
	say("| broken locks released after an approval, asked for again; next holders who lost theirs to it | %d, %d; %d |", r.people.released, r.people.again, r.robbed)
	say("| standing locks gone that nobody released | %d of %d |", r.gone, *locks)
	say("| changes missed outside of blind time | %.0f |", r.missed)
	messages, copies := r.ear.Count()
	say("| messages taken by the receiver, copies | %d, %d |", messages, copies)
	say("| changes reported, by rule | %s |", counts(r.ear.byRule))
	say("| scrapes not answered within 8 s | %d |\n", r.all.silent)
	say("## Memory, goroutines, open files\n")
	say("Lines (least squares) through the samples of each stretch in which an agent has the target, or has it not, without the first %s of its life and %s", warm, settle)
	say("after each change; a stretch needs %d samples. Memory may grow by %.0f %% of its mean or %d MiB, goroutines and files by %d: along a line (memory along", enough, mayGrow*100, mayGrowBytes>>20, mayGrowCount)
	say("those of %s and more), and, in what it has at least, from one stretch of a life to the next of its kind.\n", short(lasting))
	say("| has the target | stretches | RSS mean, greatest growth | live heap mean, greatest growth | goroutines, greatest growth | open files, greatest growth |\n| --- | --- | --- | --- | --- | --- |")
	for _, row := range r.levels() {
		say("%s", row)
	}
	if rows := r.crowds(); len(rows) > 0 {
		say("\nWhat the sample with the most goroutines of a stretch has more of than the one with the fewest, where their line grows by more than %d:\n", mayGrowCount)
		say("| agent | life | fewest at | most at | more | from where they are to where they began |\n| --- | --- | --- | --- | --- | --- |")
		for _, row := range rows {
			say("%s", row)
		}
	}
	say("\n## What happened\n")
	say("Blind is what agents reported by `locksteward_watch_blind_seconds_total`, summed over masters, until the next complete sweep.\n")
	say("| what | times | took at most | blind at most | swept anew by another life |\n| --- | --- | --- | --- | --- |")
	for _, row := range r.kinds() {
		say("%s", row)
	}
	say("\n## Again\n")
	say("```sh\nmake soak SOAKTIME=%s\n```", *length)
	return b.String()
}

// crowds are the rows of [crowd] for the stretches in which goroutines grow.
func (r *run) crowds() (rows []string) {
	for _, g := range r.stretches {
		if g.goroutines.grows <= mayGrowCount {
			continue
		}
		rows = append(rows, crowd(g.agent, g.life, g.from, g.to, r.all.list)...)
	}
	return rows
}

// levels has a row for the stretches with the target, and one for each way to be without it.
func (r *run) levels() (rows []string) {
	groups := map[string][]stretch{}
	for _, g := range r.stretches {
		groups[g.has()] = append(groups[g.has()], g)
		r.t.Logf("%s, life %d, target %s, %s to %s: RSS %+v, live heap %+v, goroutines %+v, open files %+v", g.agent, g.life, g.has(), short(g.from), short(g.to), g.rss, g.live, g.goroutines, g.files)
	}
	for _, has := range slices.Sorted(maps.Keys(groups)) {
		between := func(of func(stretch) line, unit float64) string {
			least, most, grows := math.Inf(1), 0.0, math.Inf(-1)
			for _, g := range groups[has] {
				l := of(g)
				least, most, grows = min(least, l.mean/unit), max(most, l.mean/unit), max(grows, l.grows/unit)
			}
			return fmt.Sprintf("%.0f to %.0f, %+.1f", least, most, grows)
		}
		rows = append(rows, fmt.Sprintf("| %s | %d | %s MB | %s MB | %s | %s |", has, len(groups[has]),
			between(func(g stretch) line { return g.rss }, 1e6), between(func(g stretch) line { return g.live }, 1e6),
			between(func(g stretch) line { return g.goroutines }, 1), between(func(g stretch) line { return g.files }, 1)))
	}
	return rows
}

// kinds has a row for each kind of fault.
func (r *run) kinds() (rows []string) {
	groups := map[string][]fault{}
	for _, f := range r.faults {
		groups[f.kind] = append(groups[f.kind], f)
		r.t.Logf("%s: %s: %s took %s, blind %.1f s, swept anew by another life: %t", short(f.at), f.kind, f.what, f.took.Round(100*time.Millisecond), f.blind, f.swept)
	}
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		var took time.Duration
		blind, swept := 0.0, 0
		for _, f := range groups[kind] {
			took, blind = max(took, f.took), max(blind, f.blind)
			if f.swept {
				swept++
			}
		}
		rows = append(rows, fmt.Sprintf("| %s | %d | %s | %.1f s | %d |", kind, len(groups[kind]), took.Round(100*time.Millisecond), blind, swept))
	}
	return rows
}

func (r *run) loads() string {
	var v []float64
	for _, s := range r.all.list {
		v = append(v, s.load)
	}
	slices.Sort(v)
	if len(v) == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f at least, %.1f in the middle, %.1f at most", v[0], v[len(v)/2], v[len(v)-1])
}

func short(d time.Duration) string { return d.Round(time.Second).String() }

func quantiles(list []time.Duration) string {
	if len(list) == 0 {
		return "none"
	}
	list = slices.Sorted(slices.Values(list))
	at := func(q float64) string {
		return list[min(len(list)-1, int(q*float64(len(list))))].Round(10 * time.Millisecond).String()
	}
	return at(0.5) + " / " + at(0.99) + " / " + at(1)
}

func counts(m map[string]int) string {
	var list []string
	for name, n := range m {
		list = append(list, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(list)
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// machine names the processor, as far as the system tells.
func machine() string {
	model := "unknown processor"
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if _, name, ok := strings.Cut(lines.Text(), "model name\t: "); ok {
				model = name
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %d cores of %s, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, runtime.Version())
}
