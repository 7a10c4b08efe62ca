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
	)
	return agentCommand[any]{
		use: "request {KEY | --host HOST} --reason REASON", short: "Request the release of a lock, or of those of a dead host", args: cobra.ArbitraryArgs,
		long: `Request the release of a lock. With --wait the command waits for the outcome, and its
exit code is 0 if the lock was released (or is gone by itself), 1 if not. Ctrl-C ends
the wait, not the request.

With --host it requests the release of the locks of a dead host, with one decision for
all. Without a KEY these are the locks of the target whose holder is on the host and
dead by the rules holder/dead and host/lost.`,
		reason: &ask.reason,
		flags: func(c *cobra.Command) {
			ask.register(c)
			c.Flags().BoolVar(&dryRun, "dry-run", false, "show the request and what it would do, without storing or releasing anything")
			c.Flags().BoolVar(&wait, "wait", false, "wait for the outcome")
			c.Flags().StringVar(&host, "host", "", "the dead host, as the holders of its locks name it")
			c.MarkFlagsMutuallyExclusive("dry-run", "wait")
			for _, other := range []string{"dry-run", "wait", "holder-alive", "take-over", "lock-delay", "db"} {
				c.MarkFlagsMutuallyExclusive("host", other)
			}
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (any, error) {
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
			if r, ok := v.(api.Request); ok && wait {
				return notReleased(r)
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

func releaseBreakGlassCommand(p *program) *cobra.Command {
	var (
		ask requestFlags
		in  api.BreakGlass
	)
	return agentCommand[api.Request]{
		use: "break-glass KEY --reason REASON", short: "Release a lock without an approval; notifies all receivers", args: cobra.ExactArgs(1),
		long: `Break glass: request a release and decide on it alone, without the approvals, caps and
pauses of automatic releases. It needs the role break-glass. It always notifies every
receiver; without a receiver it is refused. It does not override a pause of all
releases, a class with release: off, or the comparison: a changed lock is not deleted.`,
		reason: &ask.reason,
		flags: func(c *cobra.Command) {
			ask.register(c)
			registerConfirmations(c, &in.ConfirmNoIdentity, &in.ConfirmHolderAlive)
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Request, error) {
			var err error
			if in.CreateRequest, err = ask.request(ctx, client, args[0]); err != nil {
				return api.Request{}, err
			}
			return client.BreakGlass(ctx, in)
		},
		show:  writeRequest,
		after: func(r api.Request) error { return outcome("break-glass", r) },
	}.command(p)
}

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
	if v.Script != "" {
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
