package transport

import (
	"context"
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by it.
	"encoding/hex"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Script is one Lua script. It does not change.
type Script struct {
	Op        string // what it does, for errors
	text, sha string
	priority  Priority
}

// Priority says when a script is sent.
type Priority int

const (
	// Now is on a connection of its own: what keeps locks alive waits for nobody.
	Now Priority = iota
	// First is before all of Shared: others may wait for it.
	First
	// Shared is in a round trip with others where many are under way.
	Shared
)

// NewScript returns a script for op.
func NewScript(op, text string, p Priority) *Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // As above.
	return &Script{Op: op, text: text, sha: hex.EncodeToString(sum[:]), priority: p}
}

// command makes one command, whose arguments are appended to none. The strings are
// pointed at, not copied: they must not change any more.
func command(ctx context.Context, none []any, name any, script *string, keys []string, args []any) *redis.Cmd {
	all := append(none, name, script, len(keys))
	for i := range keys {
		all = append(all, &keys[i])
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// argLists is memory for the arguments of commands.
var argLists = sync.Pool{New: func() any { return new([]any) }}
