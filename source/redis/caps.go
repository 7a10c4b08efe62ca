package redis

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// retryCaps is how long a command that was refused is not asked for again: each
// refusal is an entry in the server's ACL LOG.
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

// caps remembers what a target refuses. It is safe for concurrent use.
type caps struct {
	mu      sync.Mutex
	refused map[string]time.Time
	// forbidden counts keys that the ACL did not let us read in this sweep.
	forbidden int64
	// long counts names and values that were longer than is read, in this sweep.
	long int64
	// others are sentences of what else this sweep had to do another way, by server.
	others map[string]string
}

func newCaps() *caps { return &caps{refused: map[string]time.Time{}, others: map[string]string{}} }

// has says whether an optional command is worth asking for.
func (c *caps) has(command string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, refused := c.refused[command]
	return !refused || time.Since(at) > retryCaps
}

func (c *caps) refuse(command string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[command] = time.Now()
}

// allow notes that a command worked.
func (c *caps) allow(command string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.refused, command)
}

func (c *caps) forbid(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden += int64(n)
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
	c.forbidden, c.long = 0, 0
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
