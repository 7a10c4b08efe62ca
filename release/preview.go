package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Preview is what an execution would do now. Nothing was touched for it.
type Preview struct {
	// Found says that something stands under the key; Now is that, as far as it is
	// compared.
	Found bool
	Now   locksteward.Evidence
	// Differences are what is other than the request's evidence: with any, the
	// execution ends in changed.
	Differences []string
	// Refusal is why the format does not release this lock as it stands; nil if it
	// does.
	Refusal *formats.Refusal
	// Keys, Script and Args are what would be sent; tokens are masked.
	Keys   []string
	Script string
	Args   []string
}

// mask stands for a token.
const mask = "•••"

// Preview reads the lock and says what Execute would do with it now. It touches
// nothing.
func (e *RedisExecutor) Preview(ctx context.Context, req locksteward.Request) (Preview, error) {
	var out Preview
	err := e.with(ctx, req.Evidence, func(cn *redis.Conn) error {
		command, now, err := e.command(ctx, cn, req)
		if now != nil {
			out.Found, out.Now, out.Differences = now.found, now.evidence, now.differences
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
			hide = masker(now.sample)
		}
		out.Script = command.Script
		for _, key := range command.Keys {
			out.Keys = append(out.Keys, hide(key))
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
	if err != nil {
		return Preview{}, fmt.Errorf("preview release: %s", connect.Explain(err))
	}
	return out, nil
}

// masker hides what proves that somebody holds the lock, wherever it stands in a
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

// DryRun says what a request would freeze and what its execution would do now,
// for one who may request. Nothing is stored, and nothing touched. Errors as for
// [Service.Request].
func (s *Service) DryRun(ctx context.Context, actor Actor, in RequestInput) (locksteward.Request, Preview, error) {
	r, err := s.prepare(ctx, actor, RoleRequester, in, ask{id: "dry-run", alive: in.HolderAlive, takeOver: in.TakeOver, delay: in.LockDelay})
	if err != nil {
		return locksteward.Request{}, Preview{}, s.refuse(ctx, actor, ActionPreview, in.Target, in.Key, "", in.Reason, err)
	}
	list := []locksteward.Request{r}
	err = s.countIn(list, func(since time.Time, most int, counts func(locksteward.Request) bool) (int, error) {
		return s.store.CountRecent(ctx, since, most, counts)
	})
	if err != nil {
		return locksteward.Request{}, Preview{}, err
	}
	preview, err := s.preview(ctx, list[0])
	return list[0], preview, err
}

// PreviewRequest says what the execution of a request would do now: what changed
// since it was made, and what would be sent.
func (s *Service) PreviewRequest(ctx context.Context, id string) (Preview, error) {
	r, err := s.store.GetRequest(ctx, id)
	if err != nil {
		return Preview{}, err
	}
	if r.State.Final() {
		return Preview{}, conflict("request %s is %s already, which is final", r.ID, r.State)
	}
	return s.preview(ctx, r)
}

func (s *Service) preview(ctx context.Context, r locksteward.Request) (Preview, error) {
	executor, err := s.executor(r.Evidence.Target)
	if err != nil {
		return Preview{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.settings.Load().cfg.ExecuteTimeout, errTooSlow)
	defer cancel()
	return executor.Preview(ctx, r)
}
