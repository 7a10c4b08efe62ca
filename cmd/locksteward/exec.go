package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/execlock"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/lock"
)

// Exit codes of exec beside those of its command, see docs/adr/0019. They can be
// moved away from those of a command that uses them.
const (
	execHeld      = 75  // EX_TEMPFAIL: another has the lock, try again later
	execLost      = 79  // the lock was lost, the command was stopped
	execFailed    = 125 // exec itself failed: the server is away, for one
	execNoExecute = 126 // the command cannot be executed
	execNotFound  = 127 // there is no such command
	execSignalled = 128 // and the number of the signal
)

type execFlags struct {
	server   serverFlags
	key      string
	lease    lock.Lease
	wait     string
	app      string
	prefix   string
	fenceEnv string
	onLost   string
	grace    time.Duration
	lost     int
	conflict int
	quiet    bool
}

func execCommand(p *program) *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use:   "exec --server URL --key KEY -- COMMAND [ARG]...",
		Short: "Run a command while holding a lock",
		Long: `Exec takes a lock, runs a command, and releases the lock when the command ends.
The lock is one of our library, with its metadata, renewal, heartbeat and fence,
so that its holder is visible. Input, output, signals and the exit code are
the command's.

If the lock is lost (the server is unreachable for longer than the lease, somebody
released it, --max-hold has passed), the command and its child processes get SIGTERM,
and after --grace SIGKILL. A second process does the same if exec itself is killed or
frozen.

The command finds the name of the lock in LOCKSTEWARD_LOCK_KEY and its fence, a number
that grows with each hold, in LOCKSTEWARD_FENCE. The resource that it writes to should
refuse a fence smaller than one it has seen: nothing else stops a write that was under
way when the lock was lost.

Exit codes: that of the command; 75 the lock is held by another; 79 the lock was lost;
125 the lock could not be requested; 126 the command cannot be executed; 127 command
not found; 128+N ended by signal N, also while waiting; 2 wrong usage.`,
		Example: `  locksteward exec --server redis://127.0.0.1:6379 --key lock:backup --wait 0 -- /usr/local/bin/backup.sh
  locksteward exec --server redis://127.0.0.1:6379 --key lock:deploy --wait 10m --expect 2m -- ./deploy.sh production`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runExec(cmd.Context(), p, f, args) },
	}
	f.server.registerFlags(c)
	flags := c.Flags()
	f.server.inFlag = true
	flags.StringVar(&f.server.url, "server", "", "server: "+redisForms+" (or set "+serverEnv+")")
	flags.SetInterspersed(false) // the command's own flags are its own, also without --
	flags.StringVar(&f.key, "key", "", "name of the lock")
	flags.DurationVar(&f.lease.TTL, "lease", 30*time.Second, "how long the lock outlives a holder that died (10ms to 24h); renewed every third of it")
	flags.StringVar(&f.wait, "wait", "", "longest wait for the lock, 0 to try once (default: no limit)")
	flags.DurationVar(&f.lease.Expect, "expect", 0, "how long the command should take; a longer hold is reported (0: unknown)")
	flags.DurationVar(&f.lease.MaxHold, "max-hold", 0, "stop the command after it has held the lock for this long (0: never)")
	flags.StringVar(&f.lease.Class, "class", "", "class of the lock")
	flags.StringVar(&f.lease.Purpose, "purpose", "", "purpose of the lock, shown to people")
	flags.StringVar(&f.app, "app", "", "application name in the lock's metadata (default: the base name of the command)")
	flags.StringVar(&f.prefix, "meta-prefix", "", "prefix of the metadata keys, if not the default")
	flags.StringVar(&f.fenceEnv, "fence-env", execlock.FenceEnv, "environment variable for the fence")
	flags.StringVar(&f.onLost, "on-lost", string(execlock.StopTerm), "when the lock is lost: term (SIGTERM, then SIGKILL) or kill (SIGKILL at once)")
	flags.DurationVar(&f.grace, "grace", execlock.DefaultGrace, "from SIGTERM to SIGKILL")
	flags.IntVar(&f.lost, "lost-exit-code", execLost, "exit code for a lost lock")
	flags.IntVarP(&f.conflict, "conflict-exit-code", "E", execHeld, "exit code if the lock is held by another")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing if the lock is held by another")
	c.AddCommand(execGuardCommand(p))
	return c
}

// execGuardUse is the hidden subcommand that exec starts beside its command.
const execGuardUse = "exec-guard"

// execGuardCommand is the process that stops the command if exec cannot.
func execGuardCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    execGuardUse + " ON-LOST GRACE",
		Short:  "Watch over a command of exec",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			grace, err := time.ParseDuration(args[1])
			if err != nil {
				return usagef("GRACE: %w", err)
			}
			return execlock.Guard(os.Stdin, execlock.Stop(args[0]), grace, p.stderrPrinter())
		},
	}
}

// stderrPrinter returns a function that prints messages to stderr, one at a time.
func (p *program) stderrPrinter() func(string) {
	var mu sync.Mutex
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		report(p.stderr, errors.New(oneLine(text)))
	}
}

func runExec(ctx context.Context, p *program, f execFlags, args []string) error {
	o, err := f.options(args)
	if err != nil {
		return err
	}
	o.Print = p.stderrPrinter()
	// Signals are exec's own business from here on: they are for the command.
	res, err := execlock.Run(context.WithoutCancel(ctx), o)
	if err != nil {
		return f.failed(err)
	}
	if res.Release != nil {
		o.Print(res.Release.Error())
	}
	switch {
	case errors.Is(res.Lost, lock.ErrMaxHold):
		o.Print(fmt.Sprintf("the command was stopped (it ended with code %d): it ran for longer than --max-hold; %v", res.Code, res.Lost))
		return &codeError{code: f.lost}
	case res.Lost != nil:
		o.Print(fmt.Sprintf("the lock was lost before the command ended (with code %d): another may have run beside it; %v", res.Code, res.Lost))
		return &codeError{code: f.lost}
	case res.Code != 0:
		return &codeError{code: res.Code}
	default:
		return nil
	}
}

func (f execFlags) options(args []string) (execlock.Options, error) {
	conn, err := f.server.config()
	if err != nil {
		return execlock.Options{}, err
	}
	switch {
	case f.key == "":
		return execlock.Options{}, usagef("--key is missing, name the lock")
	case len(args) == 0 || args[0] == "":
		return execlock.Options{}, usagef("COMMAND is missing, write it after --")
	}
	for name, code := range map[string]int{"--lost-exit-code": f.lost, "--conflict-exit-code": f.conflict} {
		if code < 0 || code > 255 {
			return execlock.Options{}, usagef("%s: want 0 to 255, got %d", name, code)
		}
	}
	try := false
	if f.wait != "" {
		wait, err := time.ParseDuration(f.wait)
		if err != nil || wait < 0 {
			return execlock.Options{}, usagef("--wait: want a time such as 1m, or 0 to try once, got %q", f.wait)
		}
		f.lease.Wait, try = wait, wait == 0
	}
	self, err := os.Executable()
	if err != nil {
		return execlock.Options{}, fmt.Errorf("find the program: %w", err)
	}
	return execlock.Options{
		Connect: conn, Key: f.key, Lease: f.lease, Try: try,
		App: cmp.Or(f.app, filepath.Base(args[0])), KeyPrefix: f.prefix,
		Command: args, Env: withoutPassword(os.Environ()), FenceEnv: f.fenceEnv,
		OnLost: execlock.Stop(f.onLost), Grace: f.grace,
		Guard: []string{self, "exec", execGuardUse},
	}, nil
}

// withoutPassword keeps from the command what is exec's alone.
func withoutPassword(env []string) []string {
	out := make([]string, 0, len(env))
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if a, err := lockstore.Parse(value); name == serverPasswordEnv || name == serverEnv && err == nil && a.HasPassword {
			continue
		}
		out = append(out, v)
	}
	return out
}

// failed gives an error of a command that did not run its exit code.
func (f execFlags) failed(err error) error {
	if stopped, ok := errors.AsType[*execlock.SignalError](err); ok {
		return &codeError{code: execSignalled + int(stopped.Signal), err: err}
	}
	if start, ok := errors.AsType[*execlock.StartError](err); ok {
		code := execNoExecute
		if start.NotFound() {
			code = execNotFound
		}
		return &codeError{code: code, err: err}
	}
	switch {
	case errors.Is(err, lock.ErrHeld):
		if f.quiet {
			err = nil
		}
		return &codeError{code: f.conflict, err: err}
	case errors.Is(err, lock.ErrLost):
		return &codeError{code: f.lost, err: fmt.Errorf("%w; the command was not started", err)}
	case errors.Is(err, lock.ErrInvalid):
		return usagef("%s", leaseFlags.Replace(err.Error()))
	default:
		return &codeError{code: execFailed, err: withHint(err)}
	}
}

// leaseFlags are the fields of a lease, as people write them here.
var leaseFlags = strings.NewReplacer("Lease.TTL:", "--lease:", "Lease.Expect:", "--expect:", "Lease.MaxHold:", "--max-hold:", "Lease.Wait:", "--wait:",
	"Lease.Class, Lease.Purpose, Lease.Trace:", "--class, --purpose:")

// withHint adds a remedy to errors that lack one.
func withHint(err error) error {
	if reply, ok := errors.AsType[*lock.ServerError](err); ok && reply.Code == lock.CodeMoved {
		return fmt.Errorf("%w; the server is a node of a Cluster: write --server redis+cluster://HOST:PORT", err)
	}
	return err
}
