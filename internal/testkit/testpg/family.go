package testpg

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// member is a child of the server's first process: a connection or a helper.
type member struct {
	pid   int
	state byte // as ps shows it: R, S, D, T, Z
}

func (m member) dead() bool { return m.state == 'Z' || m.state == 'X' }

func (m member) stopped() bool { return m.state == 'T' || m.dead() }

func (r *run) alive() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

var errNotRunning = errors.New("it is not running")

// pause stops the first process, which makes the others, and then those.
func (r *run) pause() error {
	if !r.alive() {
		return errNotRunning
	}
	if err := sendStop(r.process.Pid); err != nil {
		return err
	}
	return r.all(member.stopped, sendStop)
}

func (r *run) resume() error {
	if !r.alive() {
		return errNotRunning
	}
	members, err := family(r.process.Pid)
	if err != nil {
		return err
	}
	for _, m := range members {
		err = errors.Join(err, unlessGone(sendContinue(m.pid)))
	}
	return errors.Join(err, sendContinue(r.process.Pid))
}

// crash kills every process. The first one goes last and by SIGQUIT, which it
// obeys without a word to the disk: killed, it would leave its shared memory
// behind.
func (r *run) crash() error {
	if !r.alive() {
		return nil
	}
	err := unlessGone(sendStop(r.process.Pid))
	err = errors.Join(err, r.all(member.dead, sendKill))
	err = errors.Join(err, unlessGone(sendQuit(r.process.Pid)), unlessGone(sendContinue(r.process.Pid)))
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-r.done:
		return err
	case <-timer.C:
	}
	err = errors.Join(err, unlessGone(sendKill(r.process.Pid)))
	<-r.done
	return err
}

// all sends to every member until each is in the state wanted. A signal takes
// effect when the process next runs, and a fork may have been under way.
func (r *run) all(there func(member) bool, send func(pid int) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	deadline := time.NewTimer(stopTimeout)
	defer deadline.Stop()
	for {
		members, err := family(r.process.Pid)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(members, there)
		if len(left) == 0 {
			return nil
		}
		for _, m := range left {
			if err := unlessGone(send(m.pid)); err != nil {
				return fmt.Errorf("signal process %d: %w", m.pid, err)
			}
		}
		select {
		case <-r.done:
			return nil
		case <-deadline.C:
			return fmt.Errorf("%d processes take no signal", len(left))
		case <-tick.C:
		}
	}
}

func unlessGone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
