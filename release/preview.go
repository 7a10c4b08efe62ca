package release

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// DryRun says what a request would freeze and what its execution would do now,
// for one who may request. Nothing is stored, and nothing touched. Errors as for
// [Service.Request].
func (s *Service) DryRun(ctx context.Context, actor Actor, in RequestInput) (locksteward.Request, source.Preview, error) {
	r, err := s.prepare(ctx, actor, RoleRequester, in, ask{id: "dry-run", alive: in.HolderAlive, takeOver: in.TakeOver, delay: in.LockDelay})
	if err != nil {
		return locksteward.Request{}, source.Preview{}, s.refuse(ctx, actor, ActionPreview, in.Target, in.Key, "", in.Reason, err)
	}
	list := []locksteward.Request{r}
	err = s.countIn(list, func(since time.Time, most int, counts func(locksteward.Request) bool) (int, error) {
		return s.store.CountRecent(ctx, since, most, counts)
	})
	if err != nil {
		return locksteward.Request{}, source.Preview{}, err
	}
	preview, err := s.preview(ctx, list[0])
	return list[0], preview, err
}

// PreviewRequest says what the execution of a request would do now: what changed
// since it was made, and what would be sent.
func (s *Service) PreviewRequest(ctx context.Context, id string) (source.Preview, error) {
	r, err := s.store.GetRequest(ctx, id)
	if err != nil {
		return source.Preview{}, err
	}
	if r.State.Final() {
		return source.Preview{}, conflict("request %s is %s already, which is final", r.ID, r.State)
	}
	return s.preview(ctx, r)
}

func (s *Service) preview(ctx context.Context, r locksteward.Request) (source.Preview, error) {
	releaser, err := s.releaser(r.Evidence.Target)
	if err != nil {
		return source.Preview{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.settings.Load().cfg.ExecuteTimeout, errTooSlow)
	defer cancel()
	return releaser.Preview(ctx, r)
}
