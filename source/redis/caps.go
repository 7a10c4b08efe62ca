package redis

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// retryCaps is how long a command that was refused is not asked for again: each
// refusedCommand is an entry in the server's ACL LOG.
const retryCaps = 10 * time.Minute

// optional commands, and what is missing without them.
var optional = map[string]string{
	"object|idletime": "OBJECT IDLETIME is refused: ages of locks first seen now begin at 0; grant +object|idletime",
	"memory|usage":    "MEMORY USAGE is refused: hash locks and lock metadata are listed but not read; grant +memory|usage",
	auxiliaryRight:    "queues and fences beside Redisson's locks may not be read: fair and fenced locks are taken for plain ones; grant read access to redisson_lock_*",
	"pexpiretime":     "PEXPIRETIME is refused: expiry times are computed from TTLs; grant +pexpiretime, on Redis 7.0 or later: older servers do not have it",
	"exists":          "EXISTS is refused: keys that changed are read in full though most of them are gone again; grant +exists",
	"info":            "INFO is refused: failovers, restarts, evictions and missing persistence go unnoticed; grant +info",
	"pubsub|numsub":   "PUBSUB NUMSUB is refused: no holder is presumed dead for its silence alone; grant +pubsub|numsub",
}

// refusedCommand is the answer to a command that this user may not use.
type refusedCommand struct {
	at  time.Time
	err error
}

// caps remembers what a target refuses. It is safe for concurrent use.
type caps struct {
	mu      sync.Mutex
	refused map[string]refusedCommand
	// forbidden counts keys that the ACL did not let us read in this sweep;
	// forbiddenBy is the server's last answer about one.
	forbidden   int64
	forbiddenBy error
	// long counts names and values that were longer than is read, in this sweep.
	long int64
	// others are sentences of what else this sweep had to do another way, by server.
	others map[string]string
}

func newCaps() *caps { return &caps{refused: map[string]refusedCommand{}, others: map[string]string{}} }

// has says whether an optional command is worth asking for.
func (c *caps) has(command string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, refused := c.refused[command]
	return !refused || time.Since(r.at) > retryCaps
}

// refuse notes that a command was refused with err.
func (c *caps) refuse(command string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[command] = refusedCommand{at: time.Now(), err: err}
}

// refusalOf returns the answer to a command that was refused, else nil.
func (c *caps) refusalOf(command string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused[command].err
}

// allow notes that a command worked.
func (c *caps) allow(command string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.refused, command)
}

// forbid counts a key that may not be read, by the server's answer.
func (c *caps) forbid(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden++
	c.forbiddenBy = err
}

// tooLong counts a name or value that the check of the connection read past.
func (c *caps) tooLong() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.long++
}

// instead notes what this sweep has to do another way with the server at addr.
func (c *caps) instead(addr, sentence string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others[addr] = sentence
}

// reset begins a sweep.
func (c *caps) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden, c.forbiddenBy, c.long = 0, nil, 0
	clear(c.others)
}

// notes returns what is missing, in words and as commands, both sorted.
func (c *caps) notes() (notes, commands []string, forbidden, long int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for command := range c.refused {
		notes, commands = append(notes, optional[command]), append(commands, command)
	}
	notes = slices.AppendSeq(notes, maps.Values(c.others))
	if c.long > 0 {
		notes = append(notes, fmt.Sprintf("names or values of more than 1 MiB: %d; such a key is not read, whatever it is; `redis-cli --memkeys` finds it", c.long))
	}
	slices.Sort(notes)
	slices.Sort(commands)
	return notes, commands, c.forbidden, c.long
}
