package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/locksteward/locksteward/source/redis/connect"
)

// errLimit is the cause when a demo that runs once takes too long.
var errLimit = errors.New("the demo did not get to its end")

// running is a demo that runs.
type running struct {
	opts     Options
	out      *printer
	server   *server
	settings *settings
	board    *board
	agent    *agentRun
	group    *group
	log      *tail // what the agent and its libraries say

	closers []func() error // in the order of the opening
}

// Run shows the demo and returns when nothing of it is left. It returns nil when
// everything was shown or, without Once, when ctx ended; an interrupted
// demo with Once is context.Canceled.
func Run(ctx context.Context, opts Options) (err error) {
	if opts.Size == nil {
		opts.Once = true
	}
	if len(opts.Holder) == 0 {
		return errors.New("run demo: Options.Holder is empty: give the command line of a process that calls Hold")
	}
	if opts.breath == 0 {
		opts.breath = readingTime
	}
	if opts.limit == 0 {
		opts.limit = Limit
	}
	interrupted := ctx
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := &running{opts: opts, log: &tail{}, out: &printer{w: opts.Out, colour: opts.Colour, failed: end}}
	if opts.Once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, opts.limit, fmt.Errorf("%w within %s", errLimit, opts.limit))
		defer cancel()
	}
	err = r.play(ctx)
	switch {
	case r.out.err != nil:
		err = nil // what failed is the output; it comes below
	case interrupted.Err() != nil && opts.Once:
		err = context.Canceled
	case interrupted.Err() != nil:
		err = nil
	case err != nil:
		err = r.explain(err)
	}
	err = errors.Join(err, r.close())
	if err == nil && !opts.Once && r.board != nil {
		r.printSummary()
	}
	return errors.Join(err, r.out.err)
}

// play opens everything and runs the demo to its end.
func (r *running) play(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	r.group = newGroup(ctx)
	r.later(func() error { r.group.stop(); return nil })
	r.group.run("agent", r.agent.failed)
	looks, err := r.agent.client(r.settings, guest)
	if err != nil {
		return err
	}
	r.group.run("console", func(ctx context.Context) error { return watch(ctx, looks, r.board) })

	cast := &players{
		connect: r.server.connect, scene: r.server.scene, board: r.board,
		holder: r.opts.Holder, again: !r.opts.Once,
	}
	if r.opts.Once {
		return r.report(r.group.ctx, cast)
	}
	return r.show(r.group.ctx, cast)
}

// open starts server, receiver and agent.
func (r *running) open(ctx context.Context) error {
	log := newLog(r.log)
	connect.RedirectGoRedisLog(log)
	var err error
	if r.server, err = startServer(ctx, r.opts); err != nil {
		return err
	}
	r.later(r.server.close)
	r.later(func() error { return r.server.tidy(ctx) })
	dir, err := os.MkdirTemp("", "locksteward-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	r.later(func() error { return os.RemoveAll(dir) })
	hook, err := listenSink()
	if err != nil {
		return err
	}
	r.later(func() error { return hook.stop(ctx) })
	if r.settings, err = newSettings(dir, r.server, hook.url(), r.opts.AnyPort); err != nil {
		return err
	}
	var onLine func(line)
	if r.opts.Once {
		onLine = r.out.print
	}
	r.board = newBoard(r.server.scene, onLine)
	hook.serve(r.board, r.settings.signing)
	if r.agent, err = startAgent(ctx, log, r.opts, r.settings); err != nil {
		return err
	}
	r.later(r.agent.stop)
	return nil
}

func (r *running) later(f func() error) { r.closers = append(r.closers, f) }

// close gives everything back, the last first.
func (r *running) close() error {
	var errs []error
	for len(r.closers) > 0 {
		last := len(r.closers) - 1
		f := r.closers[last]
		r.closers = r.closers[:last]
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// explain adds to an error what is known of its reason.
func (r *running) explain(err error) error {
	var b strings.Builder
	b.WriteString(err.Error())
	if errors.Is(err, errLimit) && r.board != nil {
		r.board.look(func(s *state) {
			if missing := s.missing(); len(missing) > 0 {
				fmt.Fprintf(&b, "; it never saw %s", strings.Join(missing, ", "))
			}
			if s.trouble != nil {
				fmt.Fprintf(&b, "; the agent's API said: %v", s.trouble)
			}
		})
		b.WriteString("; try again when this machine is less busy")
		if r.opts.Redis != nil {
			b.WriteString(", or on a server with fewer keys: a sweep may take no more than " + guestShare + " of its time")
		}
	}
	if log := r.log.String(); r.agent != nil && log != "" {
		b.WriteString("\nthe agent's log ends:\n" + log)
	}
	return &failure{text: b.String(), err: err}
}

// failure is an error with all that is known of it.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }
