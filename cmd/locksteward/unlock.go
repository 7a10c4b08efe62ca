package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/unlock"
)

// defaultUnlockAudit is in the working directory: what was done by hand should
// lie where the hand was.
const defaultUnlockAudit = "locksteward-audit.jsonl"

type unlockFlags struct {
	server     serverFlags
	condition  string
	reason     string
	actor      string
	audit      string
	prefixes   []string
	base64     bool
	yes        bool
	print      bool
	noIdentity bool
	output     outputFlag
}

// unlocked is what unlock says of itself in JSON.
type unlocked struct {
	api.Key
	// State is "released", "already_gone", "changed", "failed" or "unknown"; "planned"
	// when nothing was done.
	State       string   `json:"state"`
	Outcome     string   `json:"outcome"`
	Library     string   `json:"library"`
	Identity    string   `json:"identity"`
	Keys        []string `json:"keys"`
	Differences []string `json:"differences"`
	Waiters     int64    `json:"waiters_woken"`
}

func unlockCommand(p *program) *cobra.Command {
	var f unlockFlags
	c := &cobra.Command{
		Use:   "unlock KEY [URL] --if CONDITION --reason REASON",
		Short: "Release one dead lock without an agent",
		Long: `Unlock deletes one lock if it is still the hold that a scan saw, and wakes its waiters
as its library does. It shows what it would do, and does it after confirmation at the
terminal or with --yes. The release is appended to a local audit file, which an agent
can import.

Copy the condition from the output of 'locksteward scan': type, a digest of the value,
and the expiry. A lock that was renewed, released or acquired again does not match it,
and is not deleted.

A holder that is alive keeps working: make sure that it is dead.

Exit codes: 0 released, already gone, or only shown; 1 not released; 4 the lock cannot
be released safely.`,
		Example: `  locksteward unlock lock:order:42 redis://127.0.0.1:6379/0 \
    --if string.5f0c….9a41….-1 --reason 'pod orders-7 is gone, checked in INC-7'`,
		RunE: func(cmd *cobra.Command, args []string) error { return runUnlock(cmd.Context(), p, f, args[0]) },
	}
	f.server.register(c, redisForms)
	flags := c.Flags()
	flags.StringVar(&f.condition, "if", "", "condition that identifies the hold, as printed by scan")
	flags.StringVar(&f.reason, "reason", "", "reason, for the audit file")
	flags.StringVar(&f.actor, "actor", "", "your name, for the audit file (default: the user of this system)")
	flags.StringVar(&f.audit, "audit-file", defaultUnlockAudit, "audit file to append to")
	flags.StringArrayVar(&f.prefixes, "meta-prefix", nil, "prefix of our library's metadata keys, if not the default (may be repeated)")
	flags.BoolVar(&f.base64, "base64", false, "KEY is base64, for a key that is not valid UTF-8 (key_b64 in JSON)")
	flags.BoolVar(&f.yes, "yes", false, "release without asking")
	flags.BoolVar(&f.print, "print", false, "print an equivalent redis-cli command instead, which wakes no waiters (Redis 7.0)")
	flags.BoolVar(&f.noIdentity, "confirm-no-identity", false,
		"confirm that this hold cannot be distinguished from the next one (a constant value without TTL)")
	f.output.register(c)
	return c
}

func runUnlock(ctx context.Context, p *program, f unlockFlags, arg string) error {
	o, err := f.options(arg)
	if err != nil {
		return err
	}
	plan, err := unlock.NewPlan(ctx, o)
	if err != nil {
		return err
	}
	out := unlocked{
		Key: api.NewKey(o.Key), State: "planned", Library: plan.Library, Identity: string(plan.Identity),
		Keys: append([]string{}, plan.Keys...), Differences: append([]string{}, plan.Differences...),
	}
	name := locksteward.DisplayKey(o.Key)
	switch {
	case !plan.Found:
		out.State, out.Outcome = string(locksteward.RequestAlreadyGone), "the key does not exist: the lock is free"
		return showUnlocked(p, f, out)
	case len(plan.Differences) > 0:
		out.State, out.Outcome = string(locksteward.RequestChanged), "the lock does not match the condition; nothing was deleted"
		return errors.Join(showUnlocked(p, f, out), fmt.Errorf("not released: the lock changed since the scan (%s); nothing was deleted; scan again", strings.Join(plan.Differences, "; ")))
	case plan.Refusal != nil:
		return plan.Refusal
	case plan.NoIdentity() && !f.noIdentity:
		return fmt.Errorf("unlock %q: its value is a constant and it has no TTL, so the next hold looks the same: %w; "+
			"make sure that nobody acquires it meanwhile, and add --confirm-no-identity", name, locksteward.ErrRefused)
	case f.print:
		line, err := plan.Print(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.stdout, line)
		return err
	}
	if !f.yes {
		ok, err := confirm(p, plan, name)
		if err != nil {
			return err
		}
		if !ok {
			out.Outcome = "nothing was done"
			return showUnlocked(p, f, out)
		}
	}
	result, err := plan.Execute(ctx)
	if result.State == "" {
		return err
	}
	out.State, out.Outcome, out.Waiters = string(result.State), plan.Outcome(result), result.WaitersWoken
	out.Differences = append([]string{}, result.Differences...)
	if err := errors.Join(showUnlocked(p, f, out), err); err != nil {
		return err
	}
	switch result.State {
	case locksteward.RequestReleased, locksteward.RequestAlreadyGone:
		return nil
	default:
		return fmt.Errorf("not released: %s", out.Outcome)
	}
}

func (f unlockFlags) options(arg string) (unlock.Options, error) {
	conn, err := f.server.config()
	if err != nil {
		return unlock.Options{}, err
	}
	switch {
	case arg == "":
		return unlock.Options{}, usagef("KEY is empty, name the lock")
	case f.condition == "":
		return unlock.Options{}, usagef("--if is missing, copy it from the output of 'locksteward scan': it identifies the hold")
	case strings.TrimSpace(f.reason) == "":
		return unlock.Options{}, usagef("--reason is missing, write it in a sentence: it goes into the audit file")
	}
	condition, err := unlock.ParseCondition(f.condition)
	if err != nil {
		return unlock.Options{}, usagef("--if: %w", err)
	}
	key, err := (&keyFlags{base64: f.base64}).key(arg)
	if err != nil {
		return unlock.Options{}, err
	}
	actor := f.actor
	if actor == "" {
		actor = currentUser()
	}
	return unlock.Options{
		Connect: conn, Key: key, If: condition, MetaPrefixes: f.prefixes, Actor: actor, Reason: f.reason, AuditFile: f.audit,
	}, nil
}

// currentUser is the person as the system knows them.
func currentUser() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// confirm shows the plan and asks, if there is somebody to ask.
func confirm(p *program, plan *unlock.Plan, name string) (bool, error) {
	fmt.Fprintf(p.stderr, "%s: a lock of library %s, unchanged since the scan. Would delete:\n", name, plan.Library)
	for _, key := range plan.Keys {
		fmt.Fprintf(p.stderr, "  %s\n", locksteward.DisplayKey(key))
	}
	if !isTerminal(os.Stdin) {
		fmt.Fprintln(p.stderr, "locksteward: nothing was released; add --yes to release it")
		return false, nil
	}
	fmt.Fprint(p.stderr, "A holder that is alive keeps working. Is it dead, and release the lock? (yes/no) ")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read answer: %w", err)
	}
	return strings.EqualFold(strings.TrimSpace(line), "yes"), nil
}

func showUnlocked(p *program, f unlockFlags, out unlocked) error {
	if f.output.data() {
		return f.output.encode(p.stdout, out)
	}
	_, err := fmt.Fprintf(p.stdout, "%s: %s: %s\n", showKey(out.Key), out.State, out.Outcome)
	return err
}
