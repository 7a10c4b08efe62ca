package demo

import (
	"io"
	"time"

	"github.com/locksteward/locksteward/source/redis/connect"
)

// Limit is how long a demo with [Options.Once] takes at most, without the end's
// tidying up.
const Limit = 18 * time.Second

// Where the agent listens if nobody else does.
const (
	metricsListen = "127.0.0.1:10121"
	consoleListen = "127.0.0.1:10122"
)

// anyPort is a port that the system chooses.
const anyPort = "127.0.0.1:0"

// Options say what kind of demo it is.
type Options struct {
	// Redis is the server to use. nil starts one: redis-server if the machine has
	// it, else an embedded one.
	Redis *connect.Config
	// Embedded uses the embedded Redis although redis-server is installed.
	Embedded bool
	// Once shows everything once, as lines, and ends. Without it the demo redraws
	// a screen until its context ends; that needs Size.
	Once bool
	// Out gets the output. Errors of writing end the demo.
	Out io.Writer
	// Size returns the terminal's size now; nil says that Out is not a terminal.
	Size func() (columns, rows int)
	// Colour says that Out shows colours.
	Colour bool
	// Holder is the command line of a process that calls [Hold] on its stdin and
	// stdout.
	Holder []string
	// Version and Revision are those of the program.
	Version, Revision string
	// AnyPort takes free ports instead of the usual ones.
	AnyPort bool

	// breath is the pause before each step of the story on a screen.
	breath time.Duration
	// limit is [Limit], or how long a test waits on a machine that has other work.
	limit time.Duration
}

// readingTime is enough to read a step of the story.
const readingTime = 3 * time.Second
