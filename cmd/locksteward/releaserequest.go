package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/plural"
)

// requestFlags say what a request asks for: its lock, and what is to become of that.
type requestFlags struct {
	key         keyFlags
	reason      string
	holderAlive bool
	takeOver    time.Duration
	lockDelay   time.Duration
	command     *cobra.Command
}

func (f *requestFlags) register(c *cobra.Command) {
	f.key.register(c)
	f.command = c
	flags := c.Flags()
	flags.BoolVar(&f.holderAlive, "holder-alive", false, "the holder renews the lock but is stuck: compare owner, type and count, not the expiry")
	flags.DurationVar(&f.takeOver, "take-over", 0, "hold the key with a placeholder for this long instead of releasing it")
	flags.DurationVar(&f.lockDelay, "lock-delay", 0, "keep the lock unavailable for this long after its release (default: of its class)")
	c.MarkFlagsMutuallyExclusive("take-over", "lock-delay")
}

// request is what the flags ask for.
func (f *requestFlags) request(ctx context.Context, client *apiclient.Client, key string) (api.CreateRequest, error) {
	for name, d := range map[string]time.Duration{"--take-over": f.takeOver, "--lock-delay": f.lockDelay} {
		if d < 0 {
			return api.CreateRequest{}, usagef("%s: got %s, write a positive duration such as 5m", name, d)
		}
	}
	ref, err := f.key.resolve(ctx, client, key)
	if err != nil {
		return api.CreateRequest{}, err
	}
	in := api.CreateRequest{
		Target: ref.target, DB: ref.db, Key: api.NewKey(ref.key), Reason: f.reason,
		HolderAlive: f.holderAlive, TakeOverMs: f.takeOver.Milliseconds(),
	}
	if f.command.Flags().Changed("lock-delay") {
		in.LockDelayMs = new(f.lockDelay.Milliseconds())
	}
	return in, nil
}

func releaseRequestCommand(p *program) *cobra.Command {
	var (
		ask          requestFlags
		dryRun, wait bool
		host         string
		breakGlass   bool
		glass        api.BreakGlass
	)
	return agentCommand[any]{
		use: "request {KEY | --host HOST} --reason REASON", short: "Request the release of a lock, or of those of a dead host", args: cobra.ArbitraryArgs,
		long: `Request the release of a lock. With --wait the command waits for the outcome, and its
exit code is 0 if the lock was released (or is gone by itself), 1 if not. Ctrl-C ends
the wait, not the request.

With --host it requests the release of the locks of a dead host, with one decision for
all. Without a KEY these are the locks of the target whose holder is on the host and
dead by the rules holder/dead and host/lost.

With --break-glass it requests a release and decides on it alone, without the approvals,
caps and pauses of automatic releases. It needs the role break-glass. It always notifies
every receiver; without a receiver it is refused. It does not override a pause of all
releases, a class with release: off, or the comparison: a changed lock is not deleted.`,
		example: `  locksteward release request lock:order:42 --reason 'holder crashed, see INC-7' --wait
  locksteward release request --host app-7 --reason 'node is gone, INC-9'
  locksteward release request lock:order:42 --break-glass --reason 'INC-7: payments are stuck, no approver answers'`,
		reason: &ask.reason,
		flags: func(c *cobra.Command) {
			ask.register(c)
			c.Flags().BoolVar(&dryRun, "dry-run", false, "show the request and what it would do, without storing or releasing anything")
			c.Flags().BoolVar(&wait, "wait", false, "wait for the outcome")
			c.Flags().StringVar(&host, "host", "", "the dead host, as the holders of its locks name it")
			c.Flags().BoolVar(&breakGlass, "break-glass", false, "release the lock now, without an approval; notifies all receivers")
			registerConfirmations(c, &glass.ConfirmNoIdentity, &glass.ConfirmHolderAlive)
			for _, name := range []string{"confirm-no-identity", "confirm-holder-alive"} {
				f := c.Flags().Lookup(name)
				f.Usage = "with --break-glass: " + f.Usage
			}
			c.MarkFlagsMutuallyExclusive("dry-run", "wait", "break-glass")
			for _, other := range []string{"dry-run", "wait", "holder-alive", "take-over", "lock-delay", "db", "break-glass"} {
				c.MarkFlagsMutuallyExclusive("host", other)
			}
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (any, error) {
			if !breakGlass && (glass.ConfirmNoIdentity || glass.ConfirmHolderAlive) {
				return nil, usagef("--confirm-no-identity and --confirm-holder-alive need --break-glass: else who approves confirms")
			}
			if ask.command.Flags().Changed("host") {
				return requestBundle(ctx, client, ask, host, args)
			}
			switch len(args) {
			case 0:
				return nil, usagef("KEY is missing; see 'locksteward release request --help'")
			case 1:
			default:
				return nil, usagef("got %d arguments, takes KEY: quote arguments with blanks; see 'locksteward release request --help'", len(args))
			}
			in, err := ask.request(ctx, client, args[0])
			if err != nil {
				return nil, err
			}
			if breakGlass {
				glass.CreateRequest = in
				return client.BreakGlass(ctx, glass)
			}
			if dryRun {
				return client.DryRun(ctx, in)
			}
			r, err := client.CreateRequest(ctx, in)
			if err == nil && wait {
				r, err = awaitOutcome(ctx, client, p.stderr, r)
			}
			return r, err
		},
		show: writeRequested,
		after: func(v any) error {
			r, ok := v.(api.Request)
			switch {
			case ok && wait:
				return notReleased(r)
			case ok && breakGlass:
				return outcome("break-glass", r)
			}
			return nil
		},
	}.command(p)
}

// requestBundle requests the release of the locks of a dead host.
func requestBundle(ctx context.Context, client *apiclient.Client, ask requestFlags, host string, keys []string) (api.Bundle, error) {
	in := api.CreateBundle{Host: host, Reason: ask.reason}
	if host == "" {
		return api.Bundle{}, usagef("--host is empty, write the dead host as its locks' holders name it: see 'locksteward locks list'")
	}
	for _, arg := range keys {
		name, err := ask.key.key(arg)
		if err != nil {
			return api.Bundle{}, err
		}
		in.Keys = append(in.Keys, api.NewKey(name))
	}
	var err error
	if in.Target, err = ask.key.oneTarget(ctx, client); err != nil {
		return api.Bundle{}, err
	}
	return client.CreateBundle(ctx, in)
}

// shownScript is how many lines of a script a preview shows: all of a statement of SQL.
const shownScript = 20

func writePreview(w io.Writer, v api.Preview) error {
	var b strings.Builder
	e := v.Request.Evidence
	fmt.Fprintf(&b, "%s of %s (%s, library %s)\n", e.Act, showKey(e.Key), e.Type, e.Library)
	fmt.Fprintf(&b, "identity %s\n", explainedIdentity(identity(e), e.Identity))
	switch {
	case v.Refusal != "":
		fmt.Fprintf(&b, "refused: %s\n", oneLine(v.Refusal))
	case !v.Found && e.Of == "":
		fmt.Fprintln(&b, "the key does not exist now: the outcome would be already_gone")
	case len(v.Differences) > 0:
		fmt.Fprintf(&b, "changed since: %s; nothing would be deleted\n", oneLine(strings.Join(v.Differences, ", ")))
	default:
		fmt.Fprintln(&b, "unchanged: it would be executed")
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", oneLine(w))
	}
	switch lines := strings.Count(v.Script, "\n") + 1; {
	case v.Script == "":
	case lines > shownScript:
		fmt.Fprintf(&b, "script: %d lines with %s and %s; '--output json' shows them\n", lines, plural.Count(len(v.Keys), "key"), plural.Count(len(v.Args), "argument"))
	default:
		fmt.Fprintln(&b, "\nkeys:")
		for _, k := range v.Keys {
			fmt.Fprintf(&b, "  %s\n", k)
		}
		fmt.Fprintln(&b, "arguments:")
		for _, a := range v.Args {
			fmt.Fprintf(&b, "  %s\n", a)
		}
		fmt.Fprintf(&b, "script:\n%s\n", v.Script)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
