package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// A person is informed which argument is missing, not how many there are.
func TestArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"spoons --agent http://127.0.0.1:1":        `unknown command "spoons" for "locksteward"; see 'locksteward --help'`,
		"scna --agent http://127.0.0.1:1":          `unknown command "scna" for "locksteward"; did you mean "scan"?`,
		"release aprove r-1":                       `unknown command "aprove" for "locksteward release"; did you mean "approve"?`,
		"locks --class orders":                     "locksteward locks needs a subcommand: list",
		"users frob --x":                           `unknown command "frob" for "locksteward users"; see 'locksteward users --help'`,
		"users http://a:b@c --x":                   "an argument is a URL with a password",
		"users http://a:b@c":                       "an argument is a URL with a password",
		"status http://a:b@c":                      "an argument is a URL with a password",
		"audit verify --export x --store y":        "--export and --store exclude each other; see 'locksteward audit verify --help'",
		"status please":                            `got "please", takes no arguments; see 'locksteward status --help'`,
		"release approve --reason x":               "ID is missing; see 'locksteward release approve --help'",
		"release request --reason x":               "KEY is missing",
		"users add --role viewer":                  "NAME is missing",
		"audit export":                             "FILE is missing",
		"release request lock:order 42 --reason x": "got 2 arguments, takes KEY: quote arguments with blanks",
		"release approve r-1 --reason pod is out":  "got 3 arguments, takes ID: quote arguments with blanks",
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), strings.Fields(line), &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: code %d, %q, want %q", line, code, stderr.String(), want)
		}
	}
}

// A command that is gone leads to what replaced it, also with the flags that it had.
func TestFormerCommandsNameTheirSuccessors(t *testing.T) {
	t.Parallel()
	for old, now := range formerCommands {
		if args, ok := strings.CutPrefix(now, "locksteward "); ok {
			if err := namesCommand(strings.Fields(args)); err != nil {
				t.Errorf("%s: %v", now, err)
			}
		}
		for _, line := range []string{old, old + " x", old + " x --reason y"} {
			var stdout, stderr strings.Builder
			words := strings.Fields(old)
			want := fmt.Sprintf("unknown command %q for ", words[len(words)-1])
			if code := run(t.Context(), strings.Fields(line), &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), want) || !strings.Contains(stderr.String(), "; write '"+now+"'") {
				t.Errorf("%s: code %d, %q, want %q", line, code, stderr.String(), now)
			}
		}
	}
}

// Anyone who approves on the command line sees what they approve.
func TestRequestSaysWhatItAsksFor(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]api.Evidence{
		"release": {Act: locksteward.ActRelease.String()},
		"release, and the lock is unavailable for 20.0s": {Act: "release", PlaceholderMs: 20_000},
		"take-over for 10m00s":                           {Act: "take-over", PlaceholderMs: (10 * time.Minute).Milliseconds()},
		"undo of r-1":                                    {Act: "undo", Of: "r-1"},
		"lift of r-1":                                    {Act: "lift", Of: "r-1", PlaceholderMs: 5000},
		"release; its holder is alive: owner, type and count are compared, not the expiry": {Act: "release", HolderAlive: true},
		"release; break-glass: by one person, without approvals":                           {Act: "release", BreakGlass: true},
	} {
		var out strings.Builder
		if err := writeRequest(&out, api.Request{ID: "r-2", State: "pending", Evidence: e}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "\nasks for:  "+want+"\n") {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
}

// A bundle says who asked and how many approvals it still lacks.
func TestBundleSaysWhoAskedAndWhatItLacks(t *testing.T) {
	t.Parallel()
	one, two := 1, 2
	asked := api.Request{State: "pending", Requester: "ana", Reason: "node is gone", ApprovalsGiven: 1, ApprovalsNeeded: &two}
	enough := api.Request{State: "pending", Requester: "ana", Reason: "node is gone", ApprovalsGiven: 1, ApprovalsNeeded: &one}
	var out strings.Builder
	if err := writeBundle(&out, api.Bundle{ID: "b-1", Open: 2, Requests: []api.Request{enough, asked}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nrequested: by ana at ", ": node is gone\n", "\napprovals: 1 of 2\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
	asked.State = "released"
	out.Reset()
	if err := writeBundle(&out, api.Bundle{ID: "b-1", Requests: []api.Request{asked}}); err != nil || strings.Contains(out.String(), "approvals:") {
		t.Errorf("%v, of a bundle that is over:\n%s", err, out.String())
	}
}
