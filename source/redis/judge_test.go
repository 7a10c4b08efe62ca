package redis

import "testing"

type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}

// Servers say in several ways that a key may not be read: it is that key alone that
// cannot be, not the command.
func TestRefusalOfAKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]verdict{
		"NOPERM this user has no permissions to access one of the keys used as arguments":         forbidden, // Redis 6.0 to 7.0
		"NOPERM User scanner has no permissions to access one of the keys used as arguments":      forbidden, // Redis 7.2
		"NOPERM No permissions to access a key":                                                   forbidden, // Redis 8, Valkey 8
		"NOPERM this user has no permissions to run the 'get' command or its subcommand":          without,
		"NOPERM User key has no permissions to run the 'memory|usage' command":                    without,
		"NOPERM No permissions to access a channel":                                               without,
		"ERR unknown command `pexpiretime`, with args beginning with: `lock:a`, ":                 without,
		"ERR Unknown subcommand or wrong number of arguments for 'trackinginfo'. Try CLIENT HELP": without,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                       changed,
	} {
		if got := judge(said(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
