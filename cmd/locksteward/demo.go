package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/locksteward/locksteward/internal/demo"
)

// demoHolderUse is the hidden subcommand of demo that it starts as a process of
// its own and kills.
const demoHolderUse = "demo-holder"

func demoCommand(p *program) *cobra.Command {
	var (
		server   serverFlags
		once     bool
		embedded bool
	)
	c := &cobra.Command{
		Use:   "demo [URL]",
		Short: "See it work: broken locks are found, shown, notified and released",
		Long: `Demo starts its own Redis (redis-server if installed, else an embedded one), runs
healthy and broken lock users on it, and the real agent: it shows findings as they
fire, notifications as a webhook receives them, the console, the metrics, and the
release of a stuck lock, requested by one person and approved by another.

On a terminal it draws a screen until Ctrl-C; with --once, or without a terminal, it
prints everything once, which takes about ten seconds.

With URL it uses your server, also if the environment names another. It only writes keys under a prefix of this run
(demo:…), which it prints first and removes at the end.`,
		Example: `  locksteward demo
  locksteward demo --once
  locksteward demo --once redis://127.0.0.1:6379/0`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts := demo.Options{Once: once, Embedded: embedded, Out: p.stdout}
			if server.url != "" {
				if embedded {
					return usagef("--embedded and URL: give one of them")
				}
				conn, err := server.config()
				if err != nil {
					return err
				}
				opts.Redis = &conn
			}
			return runDemo(cmd.Context(), p, opts)
		},
	}
	c.AddCommand(demoHolderCommand(p))
	server.registerFlags(c)
	server.registerURL(c)
	c.Long += "\n\nURL is " + redisForms + "."
	// The demo writes: it does not use the server that the environment names.
	c.Flags().BoolVar(&once, "once", false, "print everything once and end; the default without a terminal")
	c.Flags().BoolVar(&embedded, "embedded", false, "use the embedded Redis although redis-server is installed")
	return c
}

func runDemo(ctx context.Context, p *program, opts demo.Options) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, which the demo starts again: %w", err)
	}
	// Whatever ends the output must not end the program before it has removed what
	// it wrote: a closed pipe becomes an error, a closed terminal an interrupt.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	// Nor must a second Ctrl-C: tidying up is bounded, and a key left behind would
	// be somebody else's trouble.
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	opts.Holder = []string{self, "demo", demoHolderUse}
	b := thisBuild()
	opts.Version, opts.Revision = b.Version, b.Commit
	if out, ok := p.stdout.(*os.File); ok && isTerminal(out) && os.Getenv("TERM") != "dumb" {
		opts.Colour = os.Getenv("NO_COLOR") == ""
		opts.Size = func() (columns, rows int) {
			columns, rows, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return 0, 0 // the demo knows a usual size
			}
			return columns, rows
		}
	}
	return demo.Run(ctx, opts)
}
