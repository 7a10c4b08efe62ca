package releaser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// mask replaces a token.
const mask = "•••"

// Preview reads the lock and returns what Release would do with it now. Whether the user may
// touch the keys of the release is asked with a script that has them and does nothing.
func (r *Releaser) Preview(ctx context.Context, req locksteward.Request) (source.Preview, error) {
	var out source.Preview
	err := r.with(ctx, req.Evidence, func(cn *redis.Conn) error {
		command, now, err := r.command(ctx, cn, req)
		if now != nil {
			out.Found, out.Now, out.Differences = now.Found, now.evidence, now.differences
		}
		if refusal, ok := errors.AsType[*formats.Refusal](err); ok {
			out.Refusal = refusal
			return nil
		}
		if err != nil || command.Script == "" {
			return err
		}
		hide := func(text string) string { return text }
		if now != nil {
			hide = masker(now.Sample)
		}
		out.Script = command.Script
		for _, key := range command.Keys {
			out.Keys = append(out.Keys, hide(key))
		}
		if err := cn.Eval(ctx, "return 1", command.Keys).Err(); isPermission(err) {
			out.MissingRights = r.missingRights(err, "write "+shownKey(req)+", or use the keys beside it")
		}
		for _, arg := range command.Args {
			text := fmt.Sprint(arg)
			if raw, ok := arg.([]byte); ok {
				text = string(raw)
			}
			out.Args = append(out.Args, hide(text))
		}
		return nil
	})
	if isPermission(err) {
		return source.Preview{MissingRights: r.missingRights(err, "read "+shownKey(req))}, nil
	}
	if err != nil {
		return source.Preview{}, fmt.Errorf("preview release: %s", connect.Explain(err))
	}
	return out, nil
}

func shownKey(req locksteward.Request) string {
	return `"` + locksteward.DisplayKey(req.Evidence.Key) + `"`
}

// missingRights says what the user may not do: the command that the server names in its refusal, else what.
func (r *Releaser) missingRights(err error, what string) string {
	if refused := refusedCommand.FindStringSubmatch(err.Error()); refused != nil {
		what = "run " + strings.ToUpper(locksteward.DisplayKey(refused[1]))
	}
	return "the Redis user " + cmp.Or(r.cfg.Connect.Username, "default") + " may not " + what
}

// refusedCommand finds the command in the refusal of a server.
var refusedCommand = regexp.MustCompile(`to run the '([^']+)'`)

// masker hides what proves that somebody holds the lock, wherever it is in a
// text.
func masker(s formats.Sample) func(string) string {
	secrets := []string{string(s.Value)}
	for field, value := range s.Fields {
		secrets = append(secrets, field, value)
	}
	for _, m := range s.Members {
		secrets = append(secrets, m.Name)
	}
	secrets = slices.DeleteFunc(secrets, func(secret string) bool { return secret == "" })
	// The longest first: one may be part of another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return func(text string) string {
		for _, secret := range secrets {
			switch {
			case text == secret:
				return mask
			case len(secret) >= 8 && text != s.Key: // shorter ones are in everything
				text = strings.ReplaceAll(text, secret, mask)
			}
		}
		return text
	}
}
