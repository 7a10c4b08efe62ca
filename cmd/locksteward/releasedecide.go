package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// isBundle reports whether an id is of a bundle of requests, and not of one request in it.
func isBundle(id string) bool { return strings.HasPrefix(id, "b-") && !strings.Contains(id, ".") }

// releaseDecideCommand makes `release approve` or `release deny`, of a request or of a bundle.
// Without --evidence the evidence is what it has now: it never changes after the request, so
// both are the same unless the id is not the one that was looked at.
func releaseDecideCommand(p *program, verb, short string) *cobra.Command {
	var word api.Decide
	return agentCommand[any]{
		use: verb + " ID --reason REASON", short: short, args: cobra.ExactArgs(1),
		reason: &word.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&word.EvidenceHash, "evidence", "", "hash of the evidence that you reviewed (default: the current one)")
			if verb == "approve" {
				registerConfirmations(c, &word.ConfirmNoIdentity, &word.ConfirmHolderAlive)
			}
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (any, error) {
			if word.EvidenceHash == "" {
				var err error
				if word.EvidenceHash, err = evidenceHash(ctx, client, args[0]); err != nil {
					return nil, err
				}
			}
			switch approve := verb == "approve"; {
			case isBundle(args[0]) && approve:
				return client.ApproveBundle(ctx, args[0], word)
			case isBundle(args[0]):
				return client.DenyBundle(ctx, args[0], word)
			case approve:
				return client.Approve(ctx, args[0], word)
			}
			return client.Deny(ctx, args[0], word)
		},
		show: writeRequested,
		after: func(v any) error {
			b, ok := v.(api.Bundle)
			if !ok {
				return outcome(verb, v.(api.Request))
			}
			var errs []error
			for _, p := range b.Problems {
				errs = append(errs, errors.New(p))
			}
			for _, r := range b.Requests {
				errs = append(errs, outcome(verb, r))
			}
			return errors.Join(errs...)
		},
	}.command(p)
}

// evidenceHash is that of a request or bundle.
func evidenceHash(ctx context.Context, client *apiclient.Client, id string) (string, error) {
	if isBundle(id) {
		b, err := client.Bundle(ctx, id)
		return b.EvidenceHash, err
	}
	r, err := client.Request(ctx, id)
	return r.EvidenceHash, err
}

// writeRequested shows a request, a bundle, or what a request would do.
func writeRequested(w io.Writer, v any) error {
	switch v := v.(type) {
	case api.Request:
		return writeRequest(w, v)
	case api.Bundle:
		return writeBundle(w, v)
	case api.Preview:
		return writePreview(w, v)
	}
	return fmt.Errorf("cannot show a %T", v)
}

func writeRequest(w io.Writer, r api.Request) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	e := r.Evidence
	line("request", "%s (%s)", r.ID, r.State)
	line("asks for", "%s", showAct(e))
	line("lock", "%s on %s%s", showKey(e.Key), e.Target, inDB(e.DB))
	line("class", "%s", e.Class)
	line("library", "%s (%s)", e.Library, e.Type)
	line("identity", "%s", explainedIdentity(identity(e), e.Identity))
	line("holder", "%s", showHolder(e.Holder))
	if e.ExpiresAtMs > 0 {
		line("expires", "%s", time.UnixMilli(e.ExpiresAtMs).Local().Format(time.DateTime))
	} else {
		line("expires", "no, it has no TTL")
	}
	line("findings", "%s", dash(strings.Join(e.Findings, " ")))
	line("requested", "by %s at %s: %s", r.Requester, r.CreatedAt.Local().Format(time.DateTime), oneLine(r.Reason))
	if r.Bundle != "" {
		line("bundle", "%s, one of %d requests with one decision", r.Bundle, r.BundleSize)
	}
	if !r.Final && r.ApprovalsNeeded != nil {
		line("approvals", "%d of %d", r.ApprovalsGiven, *r.ApprovalsNeeded)
	}
	for _, text := range r.Warnings {
		line("warning", "%s", oneLine(text))
	}
	for _, d := range r.Decisions {
		line(d.Verdict, "by %s at %s: %s", d.By, d.At.Local().Format(time.DateTime), oneLine(d.Reason))
	}
	if !r.Final && !r.ExpiresAt.IsZero() {
		line("valid", "until %s", r.ExpiresAt.Local().Format(time.DateTime))
	}
	if r.Outcome != "" {
		line("outcome", "%s", oneLine(r.Outcome))
	}
	if r.WaitersWoken > 0 {
		line("woken", "%d", r.WaitersWoken)
	}
	line("evidence", "%s", r.EvidenceHash)
	switch {
	case r.State == string(locksteward.RequestPending):
		flags := ""
		if e.HolderAlive {
			flags += " --confirm-holder-alive"
		}
		if e.WeakIdentity {
			flags += " --confirm-no-identity"
		}
		line("next", "an approver runs locksteward release approve %s --reason REASON%s", r.ID, flags)
	case r.State == string(locksteward.RequestReleased) && e.Act == string(locksteward.ActRelease):
		line("next", "locksteward explain %s shows who has the lock now", showKey(e.Key))
	}
	return writeText(w, b.String())
}
