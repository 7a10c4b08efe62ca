package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/plural"
)

// agentStatus is what `locksteward status` says.
type agentStatus struct {
	Agent    string       `json:"agent"`
	Targets  []api.Target `json:"targets"`
	Firing   severities   `json:"firing"`
	Pending  int          `json:"pending"`
	Silenced int          `json:"silenced"`
	// Worst is the most severe finding that fires and is not silenced, null for none.
	Worst    *api.Finding     `json:"worst"`
	Open     int              `json:"open_requests"`
	Releases api.ReleasePause `json:"releases"`
	// Receivers are those of notifications.
	Receivers []api.Receiver `json:"receivers"`
	// Audit is the state of the audit trail, its signing key and its sinks.
	Audit api.AuditStatus `json:"audit"`
	// Program is the version of this program, not of the agent.
	Program string `json:"program"`
}

// severities counts findings.
type severities struct {
	Critical int `json:"critical"`
	Warning  int `json:"warning"`
	Info     int `json:"info"`
}

func (s *severities) add(severity string) {
	switch severity {
	case locksteward.SeverityCritical.String():
		s.Critical++
	case locksteward.SeverityWarning.String():
		s.Warning++
	default:
		s.Info++
	}
}

func statusCommand(p *program) *cobra.Command {
	return agentCommand[agentStatus]{
		use: "status", short: "Show the agent in a dozen lines: targets, findings, requests, notifications, audit trail",
		long: `Status shows the state of the agent in a dozen lines. --output json and yaml have more of
each, such as the public key that checks checkpoints of the audit trail, and how far
each of its sinks is.`,
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (agentStatus, error) {
			return statusOf(ctx, client)
		},
		show: writeStatus,
	}.command(p)
}

func statusOf(ctx context.Context, client *apiclient.Client) (agentStatus, error) {
	out := agentStatus{Agent: client.Where(), Program: thisBuild().Version}
	targets, err := client.Targets(ctx)
	if err != nil {
		return out, err
	}
	out.Targets = targets.Targets
	findings, err := findingsUpTo(ctx, client, apiclient.FindingsQuery{}, 0)
	if err != nil {
		return out, err
	}
	for _, f := range findings.Findings {
		switch {
		case f.SilencedBy != "":
			out.Silenced++
		case f.Status != string(locksteward.StatusFiring):
			out.Pending++
		default:
			out.Firing.add(f.Severity)
			if out.Worst == nil { // the list has the most severe first
				out.Worst = &f.Finding
			}
		}
	}
	requests, err := requestsUpTo(ctx, client, apiclient.RequestsQuery{State: "open"}, 0)
	if err != nil {
		return out, err
	}
	out.Open = len(requests.Requests)
	if out.Releases, err = client.ReleasePause(ctx); err != nil {
		return out, err
	}
	notifications, err := client.Notifications(ctx, apiclient.NotificationQuery{Limit: 1})
	if err != nil {
		return out, err
	}
	out.Receivers = notifications.Receivers
	out.Audit, err = client.AuditStatus(ctx)
	return out, err
}

func writeStatus(w io.Writer, s agentStatus) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-15s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	line("agent", "%s", s.Agent)
	up, locks := 0, 0
	var oldest time.Time
	for _, t := range s.Targets {
		if t.Up {
			up++
		}
		if swept := t.LastSweep; swept != nil {
			locks += swept.Locks
			if oldest.IsZero() || swept.At.Before(oldest) {
				oldest = swept.At
			}
		}
	}
	line("targets", "%d of %d up%s", up, len(s.Targets), also(notRead(s.Targets, time.Now())))
	if oldest.IsZero() {
		line("locks", "not known before the first sweep")
	} else {
		line("locks", "%d, oldest sweep at %s", locks, oldest.Local().Format(time.DateTime))
	}
	line("firing", "%d critical, %d warning, %d info", s.Firing.Critical, s.Firing.Warning, s.Firing.Info)
	if f := s.Worst; f != nil {
		line("worst", "%s %s: %s", f.Severity, f.Rule, oneLine(f.Summary))
	}
	line("not firing", "%d pending, %d silenced", s.Pending, s.Silenced)
	line("open requests", "%d%s", s.Open, map[bool]string{true: " (locksteward release list --state open)"}[s.Open > 0])
	line("all releases", "%s", pauseWords(s.Releases.All))
	line("automatic ones", "%s", pauseWords(s.Releases.Automatic))
	var failing []string
	for _, r := range s.Receivers {
		if r.Failing != "" {
			failing = append(failing, fmt.Sprintf("%s fails: %s", oneLine(r.Name), oneLine(r.Failing)))
		}
	}
	if len(s.Receivers) == 0 {
		line("receivers", "none: nobody is notified")
	} else {
		line("receivers", "%d%s", len(s.Receivers), also(failing))
	}
	line("audit trail", "%s", auditWords(s.Audit))
	line("this program", "%s", s.Program)
	return writeText(w, b.String())
}

// longSweep is how long a sweep takes before status mentions it: most end in seconds.
const longSweep = time.Minute

// notRead says of each target that was not read in full why, and of each whose sweep takes
// long how far it is.
func notRead(targets []api.Target, now time.Time) []string {
	var out []string
	for _, t := range targets {
		if u, ok := t.Unseen(now); ok {
			out = append(out, oneLine(t.Name+": "+u.Reason))
		} else if s := t.Sweeping; s != nil && now.Sub(s.Started) > longSweep {
			out = append(out, oneLine(t.Name+": its sweep takes long: "+s.Words(now)))
		}
	}
	return out
}

// auditWords is the state of the audit trail, with the sinks that lack entries.
func auditWords(s api.AuditStatus) string {
	signed, checkpoint := "signed by "+s.KeyID, ""
	if s.KeyID == "" {
		signed = "not signed: " + oneLine(s.Unsigned)
	}
	if s.Checkpoint != nil {
		checkpoint = ", last checkpoint at " + s.Checkpoint.At.Local().Format(time.DateTime)
	}
	var lacking []string
	for _, k := range s.Sinks {
		var is []string
		if k.Behind > 0 {
			is = append(is, fmt.Sprintf("is behind by %d", k.Behind))
		}
		if k.Missed > 0 {
			is = append(is, fmt.Sprintf("lost %d to retention", k.Missed))
		}
		if k.Problem != "" {
			is = append(is, "fails: "+strings.TrimSpace(oneLine(k.Problem)))
		}
		if len(is) > 0 {
			lacking = append(lacking, oneLine(k.Name)+" "+strings.Join(is, ", "))
		}
	}
	return fmt.Sprintf("%s, %s%s%s", plural.Count(s.Entries, "entry"), signed, checkpoint, also(lacking))
}

// also adds what is wrong to a line.
func also(problems []string) string {
	if len(problems) == 0 {
		return ""
	}
	return "; " + strings.Join(problems, "; ")
}

func targetsCommand(p *program) *cobra.Command {
	return agentCommand[api.TargetList]{
		use: "targets", short: "List the targets of an agent and their state",
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.TargetList, error) {
			return client.Targets(ctx)
		},
		show: writeTargets,
		names: func(list api.TargetList) []string {
			return namesOf(list.Targets, func(t api.Target) string { return t.Name })
		},
	}.command(p)
}

func writeTargets(w io.Writer, list api.TargetList) error {
	if len(list.Targets) == 0 {
		_, err := fmt.Fprintln(w, "no targets: add one under targets in the agent's configuration")
		return err
	}
	var rows [][]string
	for _, t := range list.Targets {
		state, swept, locks := "up", "never", "-"
		if !t.Up {
			state = "down"
		}
		if t.Paused != nil {
			state = "paused"
		}
		if s := t.LastSweep; s != nil {
			swept, locks = s.At.Local().Format(time.DateTime), fmt.Sprint(s.Locks)
			if !s.Complete {
				swept += ", incomplete"
			}
		}
		watch := "-"
		if t.Watch != nil {
			watch = t.Watch.Mode
		}
		releases := "no"
		if t.ReleaseEnabled {
			releases = "yes"
		}
		store := t.Source
		if t.Mode != "" {
			store += " " + t.Mode
		}
		rows = append(rows, []string{oneLine(t.Name), store, state, locks, swept, watch, releases, dash(oneLine(t.Reason))})
	}
	return writeTable(w, []string{"TARGET", "STORE", "STATE", "LOCKS", "LAST SWEEP", "WATCH", "RELEASES", "REASON"}, rows)
}

func classesCommand(p *program) *cobra.Command {
	return agentCommand[api.ClassList]{
		use: "classes", short: "List the classes of locks that an agent watches, in the order they match",
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.ClassList, error) {
			return client.Classes(ctx)
		},
		show: writeClasses,
		names: func(list api.ClassList) []string {
			return namesOf(list.Classes, func(c api.Class) string { return c.Class })
		},
	}.command(p)
}

func writeClasses(w io.Writer, list api.ClassList) error {
	var rows [][]string
	for _, c := range list.Classes {
		expect := "-"
		if c.ExpectMs != nil {
			expect = span(time.Duration(*c.ExpectMs) * time.Millisecond)
		}
		rows = append(rows, []string{
			oneLine(c.Class), dash(oneLine(strings.Join(c.Match, " "))), expect, dash(c.TTL), c.Release, dash(oneLine(c.Team)),
		})
	}
	return writeTable(w, []string{"CLASS", "MATCH", "EXPECT", "TTL", "RELEASE", "TEAM"}, rows)
}

func waitsCommand(p *program) *cobra.Command {
	var target string
	return agentCommand[api.Graph]{
		use: "waits", short: "Show who waits for which lock, and deadlocks first",
		flags: func(c *cobra.Command) { c.Flags().StringVar(&target, "target", "", "only of this target") },
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.Graph, error) {
			return client.Graph(ctx, target)
		},
		show: writeWaits,
	}.command(p)
}

// writeWaits shows a line for each session that waits, those of a deadlock first.
func writeWaits(w io.Writer, g api.Graph) error {
	nodes, holders := map[string]api.GraphNode{}, map[string]string{}
	for _, n := range g.Nodes {
		nodes[n.ID] = n
	}
	for _, e := range g.Edges {
		if e.Kind == api.EdgeHolds {
			holders[e.To] = showSessionNode(nodes[e.From])
		}
	}
	waits := slices.DeleteFunc(slices.Clone(g.Edges), func(e api.GraphEdge) bool { return e.Kind != api.EdgeWaitsFor || nodes[e.To].Lock == nil })
	slices.SortStableFunc(waits, func(a, b api.GraphEdge) int {
		switch {
		case a.Cycle != b.Cycle && a.Cycle:
			return -1
		case a.Cycle != b.Cycle:
			return 1
		}
		return a.Since.Compare(b.Since)
	})
	var rows [][]string
	for _, e := range waits {
		lock, since, deadlock := nodes[e.To].Lock, "-", "-"
		if !e.Since.IsZero() {
			since = e.Since.Local().Format(time.DateTime)
		}
		if e.Cycle {
			deadlock = "deadlock"
		}
		rows = append(rows, []string{showSessionNode(nodes[e.From]), lock.Target, cellKey(lock.Key), dash(holders[e.To]), since, fmt.Sprint(e.Calls), deadlock})
	}
	// A library that stores only the number of waiters names no session.
	for _, n := range g.Nodes {
		if l := n.Lock; l != nil && !slices.ContainsFunc(waits, func(e api.GraphEdge) bool { return e.To == n.ID }) && l.Waiters > 0 {
			rows = append(rows, []string{"not known", l.Target, cellKey(l.Key), dash(holders[n.ID]), "-", fmt.Sprint(l.Waiters), "-"})
		}
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "nobody waits")
		return err
	}
	if err := writeTable(w, []string{"WHO WAITS", "TARGET", "LOCK", "HELD BY", "SINCE", "CALLS", "DEADLOCK"}, rows); err != nil || g.LeftOut == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "%s with fewer waiters left out\n", plural.Count(g.LeftOut, "lock"))
	return err
}

func showSessionNode(n api.GraphNode) string {
	if n.Session == nil {
		return "-"
	}
	if who := showHolder(n.Session.Holder); who != "-" {
		return who
	}
	return dash(oneLine(n.Session.Session))
}

func reloadCommand(p *program) *cobra.Command {
	return agentCommand[api.Reloaded]{
		use: "reload", short: "Make the agent read its configuration again",
		long: `Reload makes the agent read its configuration again. One that is not valid is refused,
and the one before stays in use. It needs the role admin.`,
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.Reloaded, error) {
			return api.Reloaded{}, client.Reload(ctx)
		},
		show: func(w io.Writer, _ api.Reloaded) error {
			_, err := fmt.Fprintln(w, "the agent uses its configuration as it is now")
			return err
		},
	}.command(p)
}

func namesOf[T any](list []T, name func(T) string) []string {
	out := make([]string, 0, len(list))
	for _, one := range list {
		out = append(out, oneLine(name(one)))
	}
	return out
}
