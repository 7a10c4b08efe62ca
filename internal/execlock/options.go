package execlock

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// Names of the variables that the command finds in its environment.
const (
	// FenceEnv is the default of Options.FenceEnv.
	FenceEnv = "LOCKSTEWARD_FENCE"
	// KeyEnv has the name of the lock.
	KeyEnv = "LOCKSTEWARD_LOCK_KEY"
)

// DefaultGrace is how long a command has between SIGTERM and SIGKILL.
const DefaultGrace = 10 * time.Second

// maxGrace bounds how long a command may work on without its lock.
const maxGrace = time.Hour

// Stop is how a command is stopped whose lock is lost.
type Stop string

const (
	// StopTerm sends SIGTERM, and SIGKILL to what is left after the grace.
	StopTerm Stop = "term"
	// StopKill sends SIGKILL at once.
	StopKill Stop = "kill"
)

// Options say what is run under which lock. Key, Lease.TTL, Command and Guard
// are required.
type Options struct {
	Connect connect.Config
	Key     string
	Lease   lock.Lease
	// Try makes one attempt and waits for nobody. Lease.Wait counts otherwise.
	Try bool
	// App names the job in the lock's metadata, KeyPrefix moves the companion
	// keys; see lock.Options.
	App, KeyPrefix string

	// Command is the program and its arguments; it gets stdin, stdout and stderr of
	// this process. Env is its whole environment, to which KeyEnv and FenceEnv are added.
	Command []string
	Env     []string
	// FenceEnv is the name of the variable with the fence. Default: [FenceEnv].
	FenceEnv string
	// OnLost is what becomes of the command when the lock is lost, within Grace.
	// Default: StopTerm.
	OnLost Stop
	Grace  time.Duration

	// Guard is the program and arguments of a process that calls [Guard]; it is
	// given OnLost and Grace as two more arguments.
	Guard []string
	// Print receives messages for people, one sentence each. It is called from many
	// goroutines. Default: messages are dropped.
	Print func(text string)
}

func (o Options) withDefaults() Options {
	if o.FenceEnv == "" {
		o.FenceEnv = FenceEnv
	}
	if o.OnLost == "" {
		o.OnLost = StopTerm
	}
	if o.Print == nil {
		o.Print = func(string) {}
	}
	return o
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// validate reports all problems that neither connect nor lock would find.
func (o Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{lock.ErrInvalid}, args...)...))
	}
	if len(o.Command) == 0 || o.Command[0] == "" {
		bad("command: is missing")
	}
	if len(o.Guard) == 0 {
		bad("guard: is missing")
	}
	if strings.ContainsRune(o.Key, 0) {
		bad("key: has a NUL byte, which no environment can carry")
	}
	switch {
	case !variable.MatchString(o.FenceEnv):
		bad("fence-env: want a name of letters, digits and _, got %q", o.FenceEnv)
	case o.FenceEnv == KeyEnv:
		bad("fence-env: %s has the name of the lock", KeyEnv)
	}
	if o.OnLost != StopTerm && o.OnLost != StopKill {
		bad("on-lost: want %s or %s, got %q", StopTerm, StopKill, o.OnLost)
	}
	if o.Grace < 0 || o.Grace > maxGrace {
		bad("grace: want 0 to %s, got %s", maxGrace, o.Grace)
	}
	return errors.Join(errs...)
}

// environment is Env with the lock's own variables, which win over what is there:
// a command may run another locksteward exec.
func (o Options) environment(fence int64) []string {
	own := []string{KeyEnv + "=" + o.Key, fmt.Sprintf("%s=%d", o.FenceEnv, fence)}
	env := make([]string, 0, len(o.Env)+len(own))
	for _, v := range o.Env {
		name, _, _ := strings.Cut(v, "=")
		if name != KeyEnv && name != o.FenceEnv && name != FenceEnv {
			env = append(env, v)
		}
	}
	return append(env, own...)
}
