package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// bundleApprovals counts for the open request that lacks most.
func bundleApprovals(b api.Bundle) (given, needed int, ok bool) {
	for _, r := range b.Requests {
		if r.State != string(locksteward.RequestPending) || r.ApprovalsNeeded == nil {
			continue
		}
		if !ok || *r.ApprovalsNeeded-r.ApprovalsGiven > needed-given {
			given, needed, ok = r.ApprovalsGiven, *r.ApprovalsNeeded, true
		}
	}
	return given, needed, ok
}

func writeBundle(w io.Writer, b api.Bundle) error {
	var head strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&head, "%-10s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	line("bundle", "%s (%d of %d open)", b.ID, b.Open, len(b.Requests))
	line("host", "%s on %s", oneLine(b.Host), b.Target)
	if len(b.Requests) > 0 {
		asked := b.Requests[0] // all were asked for at once, and with one reason
		line("requested", "by %s at %s: %s", asked.Requester, asked.CreatedAt.Local().Format(time.DateTime), oneLine(asked.Reason))
	}
	if given, needed, ok := bundleApprovals(b); ok {
		line("approvals", "%d of %d", given, needed)
	}
	line("evidence", "%s", b.EvidenceHash)
	warned := map[string]bool{}
	for _, r := range b.Requests {
		for _, text := range r.Warnings {
			if !warned[text] {
				line("warning", "%s", oneLine(text))
			}
			warned[text] = true
		}
	}
	head.WriteByte('\n')
	if _, err := io.WriteString(w, head.String()); err != nil {
		return err
	}
	var rows [][]string
	for _, r := range b.Requests {
		rows = append(rows, []string{r.ID, r.State, cellKey(r.Evidence.Key), r.Evidence.Library, identity(r.Evidence), dash(oneLine(r.Outcome))})
	}
	if err := writeTable(w, []string{"ID", "STATE", "KEY", "LIBRARY", "IDENTITY", "OUTCOME"}, rows); err != nil {
		return err
	}
	for _, l := range b.LeftOut {
		name, err := l.Key.Bytes()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "left out: %s: %s\n", locksteward.DisplayKey(name), oneLine(l.Why)); err != nil {
			return err
		}
	}
	return nil
}
