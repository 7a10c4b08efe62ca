package unlock

import (
	"context"
	"crypto/sha1" //nolint:gosec // the only digest that a script of Redis can compute
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// bareScript deletes a string if its SHA-1 and its expiry are as given.
const bareScript = `if redis.sha1hex(redis.call('GET', KEYS[1]) or '') == ARGV[1] and redis.call('PEXPIRETIME', KEYS[1]) == tonumber(ARGV[2]) then return redis.call('DEL', KEYS[1]) end return 0`

// Print returns a command line of redis-cli that does the act of the plan where
// this program cannot run: it deletes the lock under the same condition, and no
// more. It reads the value for it.
func (p *Plan) Print(ctx context.Context) (string, error) {
	e := p.request.Evidence
	if e.Type != "string" {
		return "", fmt.Errorf("print: a lock that is a %s is freed in several steps, which one comparison by redis-cli cannot guard: %w; run unlock without --print", e.Type, locksteward.ErrRefused)
	}
	conn, err := connect.Open(p.opts.Connect)
	if err != nil {
		return "", err
	}
	value, err := read(ctx, conn, e.Key)
	if err := errors.Join(err, conn.Close()); err != nil {
		return "", fmt.Errorf("print: %s", connect.Explain(err))
	}
	if KeyOf(p.opts.If.Salt).Value(value) != e.TokenDigest {
		return "", fmt.Errorf("print: the lock changed a moment ago: %w", locksteward.ErrConflict)
	}
	sum := sha1.Sum(value) //nolint:gosec // see above
	words := []string{
		"redis-cli", "-u", p.opts.Connect.URL, "EVAL", bareScript, "1", e.Key, hex.EncodeToString(sum[:]), strconv.FormatInt(e.ExpireAt, 10),
	}
	for i, w := range words {
		words[i] = ShellWord(w)
	}
	return strings.Join(words, " "), nil
}

func read(ctx context.Context, conn *connect.Conn, key string) ([]byte, error) {
	master, err := conn.MasterFor(ctx, key)
	if err != nil {
		return nil, err
	}
	return master.Client.Get(ctx, key).Bytes()
}

// ShellWord quotes a word for a POSIX shell, and for bash and zsh where it has
// bytes that do not print.
func ShellWord(w string) string {
	plain := w != "" && !strings.ContainsFunc(w, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-", r)
	})
	if plain {
		return w
	}
	if locksteward.DisplayKey(w) == w {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(w) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}
