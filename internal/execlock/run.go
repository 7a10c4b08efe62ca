//go:build unix

package execlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// Result is how a command ended that was started.
type Result struct {
	// Code is the command's exit code, or 128 + n when signal n ended it.
	Code int
	// Lost is a lock.LostError if the lock was lost before the command ended: then
	// it was stopped, or may not have run alone to its end. Nil otherwise.
	Lost error
	// Release is the error of a release without a certain outcome: the lock may
	// stand until its lease is over.
	Release error
}

// releaseTimeout bounds the release, and with it how long exec outlives its
// command.
const releaseTimeout = 3 * time.Second

// Run takes the lock, runs the command, and releases the lock. It returns when
// the command has ended. It handles the process's signals from its first to its
// last moment: those that end a program are handed to the command.
//
// Errors, which mean that the command did not run: lock.ErrInvalid; what
// lock.Client.Acquire returns, lock.ErrHeld first of all; a [*StartError]; a
// [*SignalError]. No lock is held then, as far as the server answered.
func Run(ctx context.Context, o Options) (res Result, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	path, err := exec.LookPath(o.Command[0])
	if err != nil {
		return Result{}, startError(o.Command[0], err)
	}
	signals := catchSignals()
	defer signals.stop()

	// The command's stderr is no place for what go-redis prints; what matters of it
	// comes as errors.
	connect.RedirectGoRedisLog(zap.NewNop())
	conn, err := connect.Open(o.Connect)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	r := &runner{o: o, path: path, signals: signals}
	rdb, done := application(conn)
	defer func() { err = errors.Join(err, done()) }()
	client, err := lock.New(rdb, lock.Options{App: o.App, KeyPrefix: o.KeyPrefix})
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	client.Observe(r.event)
	// The handle's context derives from this one: it ends with the run.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h, err := r.acquire(ctx, cancel, client)
	if err != nil {
		return Result{}, err
	}
	r.handle.Store(h)
	return r.hold(h)
}

// application returns a client as an application would have it. The agent's own
// connections switch to CLIENT NO-TOUCH: with it a lock would look idle however
// often it is renewed, to the server's eviction and to those who look.
func application(conn *connect.Conn) (redis.UniversalClient, func() error) {
	switch rdb := conn.Universal().(type) {
	case *redis.ClusterClient:
		opt := *rdb.Options()
		opt.OnConnect = nil
		c := redis.NewClusterClient(&opt)
		return c, c.Close
	case *redis.Client:
		if conn.Mode() == locksteward.ModeSentinel {
			return rdb, func() error { return nil } // its dialer knows the Sentinels
		}
		opt := *rdb.Options()
		opt.OnConnect = nil
		c := redis.NewClient(&opt)
		return c, c.Close
	default:
		return rdb, func() error { return nil }
	}
}

// runner is one run.
type runner struct {
	o       Options
	path    string
	signals *signals
	handle  atomic.Pointer[lock.Handle]
	guard   atomic.Pointer[guardProcess]
	failing atomic.Bool // a failed renewal was reported
}

// acquire waits for the lock, until a signal cancels ctx.
func (r *runner) acquire(ctx context.Context, cancel context.CancelCauseFunc, client *lock.Client) (*lock.Handle, error) {
	done := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case sig := <-r.signals.all:
				if ends(sig) {
					cancel(&SignalError{Signal: sig})
				}
			case <-done:
				return
			}
		}
	}()
	h, err := r.take(ctx, client)
	close(done)
	<-over
	if stopped, ok := errors.AsType[*SignalError](context.Cause(ctx)); ok {
		// Nothing was begun: the lock, if it came with the signal, goes back.
		if h != nil {
			err = h.Release(context.WithoutCancel(ctx))
		}
		if errors.Is(err, lock.ErrUnknown) {
			r.o.Print(fmt.Sprintf("lock %s: no reply; if it was acquired, it stays until its lease of %s ends", displayKey(r.o.Key), r.o.Lease.TTL))
		}
		return nil, stopped
	}
	return h, err
}

// take takes the lock for its whole lease. One that was handed over lasts for a turn until it is confirmed:
// the command does not begin in that time, in which a slow machine may lose it. What was lost before it was
// confirmed is waited for again.
func (r *runner) take(ctx context.Context, client *lock.Client) (h *lock.Handle, err error) {
	for {
		if r.o.Try {
			h, err = client.TryAcquire(context.WithoutCancel(ctx), r.o.Key, r.o.Lease)
		} else {
			h, err = client.Acquire(ctx, r.o.Key, r.o.Lease)
		}
		if err != nil || h.Validity() >= r.o.Lease.TTL/2 {
			return h, err
		}
		err = h.Extend(ctx, 0)
		switch {
		case err == nil, context.Cause(ctx) != nil: // the caller releases it
			return h, nil
		case !errors.Is(err, lock.ErrLost):
			return nil, errors.Join(err, r.release(h, nil).Release)
		case r.o.Try:
			return nil, err
		}
	}
}

// hold runs the command under h, and releases it.
func (r *runner) hold(h *lock.Handle) (Result, error) {
	g, err := startGuard(r.o)
	if err != nil {
		return Result{}, errors.Join(err, r.release(h, nil).Release)
	}
	defer g.end()
	r.guard.Store(g)
	if err := h.Err(); err != nil { // lost meanwhile: a very short lease, a very slow machine
		return Result{}, errors.Join(err, r.release(h, err).Release)
	}
	c, err := startCommand(r.path, r.o, h.Fence())
	if err != nil {
		if unknown := r.release(h, nil).Release; unknown != nil {
			r.o.Print(unknown.Error())
		}
		return Result{}, startError(r.o.Command[0], err)
	}
	g.send("group %d", c.group)
	r.sendValidity(h)
	code, lost := r.watch(h, c, g)
	res := r.release(h, lost)
	res.Code = code
	return res, nil
}

// watch returns when the command has ended, and with it all of its group if the
// lock was lost before.
func (r *runner) watch(h *lock.Handle, c *command, g *guardProcess) (code int, lost error) {
	over := h.Context().Done()
	var stopping *stopper
	for {
		select {
		case <-c.done:
			if lost == nil {
				lost = h.Err()
			}
			if lost != nil {
				// What the command left behind works without the lock.
				if stopping == nil {
					r.o.Print(r.lostMessage(lost, "stopping what the command left behind"))
					stopping = r.stop(c, g)
				}
				stopping.finish()
			}
			return c.code, lost
		case sig := <-r.signals.all:
			c.signal(sig)
		case <-over:
			over = nil
			lost = h.Err()
			r.o.Print(r.lostMessage(lost, r.says()))
			stopping = r.stop(c, g)
		}
	}
}

func (r *runner) stop(c *command, g *guardProcess) *stopper {
	g.send("stopping %d", time.Now().Add(r.o.Grace).UnixNano())
	return stopGroup(c.group, r.o.OnLost, r.o.Grace)
}

func (r *runner) says() string {
	if r.o.OnLost == StopKill {
		return "killing the command"
	}
	return fmt.Sprintf("stopping the command, killing it in %s", r.o.Grace)
}

func (r *runner) lostMessage(lost error, what string) string {
	return fmt.Sprintf("%v; %s", lost, what)
}

// release gives the lock back after the command. lost is why it is not held any
// more, if that is known.
func (r *runner) release(h *lock.Handle, lost error) Result {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	err := h.Release(ctx)
	switch {
	case err == nil:
		return Result{Lost: lost}
	case errors.Is(err, lock.ErrLost):
		if lost == nil {
			lost = err
		}
		return Result{Lost: lost}
	default:
		return Result{Lost: lost, Release: fmt.Errorf("%w; the lock may stay until its lease of %s ends", err, r.o.Lease.TTL)}
	}
}

// event handles an event of the lock library.
func (r *runner) event(e lock.Event) {
	h := r.handle.Load()
	if h == nil || e.ID != h.ID() {
		return
	}
	switch e.Kind {
	case lock.EventRenewed:
		r.sendValidity(h)
		if r.failing.Swap(false) {
			r.o.Print(fmt.Sprintf("lock %s: renewed again", displayKey(r.o.Key)))
		}
	case lock.EventRenewFailed:
		if !r.failing.Swap(true) {
			r.o.Print(fmt.Sprintf("lock %s: a renewal failed, trying again; it is held for %s more: %v",
				displayKey(r.o.Key), h.Validity().Round(time.Millisecond), e.Err))
		}
	default:
	}
}

// sendValidity tells the guard for how long the lock is held. It adds half of the
// margin by which the library stops before the server does: exec comes first while
// it runs, and the guard before another can have the lock.
func (r *runner) sendValidity(h *lock.Handle) {
	if g, left := r.guard.Load(), h.Validity(); g != nil && left > 0 {
		g.send("until %d", time.Now().Add(left+r.o.Lease.TTL/200).UnixNano())
	}
}

// displayKey is a lock's name for a line on a terminal.
func displayKey(key string) string { return locksteward.DisplayKey(key) }

// startCommand starts the command as the leader of a process group of its own.
func startCommand(path string, o Options, fence int64) (*command, error) {
	c := &command{tty: foreground(), done: make(chan struct{})}
	p, err := os.StartProcess(path, o.Command, &os.ProcAttr{
		Env: o.environment(fence), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: c.attributes(),
	})
	if err != nil {
		return nil, err
	}
	c.group = p.Pid
	// It is waited for by its number; the handle is not needed.
	_ = p.Release()
	go c.wait()
	return c, nil
}
