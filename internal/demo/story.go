package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// The reasons that people give, as they would.
const (
	requestReason = "checkout is stuck: the pod that held the lock was evicted"
	approveReason = "checked with kubectl: the pod is gone"
)

// story has the order's lock released by two people and tells each step. It
// returns when the waiting client has the lock and the alert was taken back.
func (r *running) story(ctx context.Context) error {
	key := r.server.scene.order()
	b := r.board
	if err := b.await(ctx, func(s *state) bool {
		return s.seen(expectation{rule: "hold/too-long", key: key}) != nil && s.alert(locksteward.StatusFiring, "hold/too-long", key)
	}); err != nil {
		return err
	}
	r.breathe(ctx)
	request, err := r.ask(ctx, key)
	if err != nil {
		return err
	}
	r.breathe(ctx)
	if err := r.tryAlone(ctx, request); err != nil {
		return err
	}
	r.breathe(ctx)
	at := time.Now()
	done, err := r.approve(ctx, request)
	if err != nil {
		return err
	}
	if err := r.wokeUp(ctx, at, done); err != nil {
		return err
	}
	if err := r.trail(ctx, request.ID); err != nil {
		return err
	}
	if err := b.await(ctx, func(s *state) bool { return s.alert(locksteward.StatusResolved, "hold/too-long", key) }); err != nil {
		return fmt.Errorf("the alert on %s was not taken back: %w", key, err)
	}
	b.tell(step(6, "the webhook was notified that hold/too-long on "+key+" is resolved"))
	b.update(func(s *state) { s.ended = true })
	return nil
}

// breathe leaves who watches the screen time to read.
func (r *running) breathe(ctx context.Context) {
	if !r.opts.Once {
		pause(ctx, r.opts.breath)
	}
}

// ask is ana's request.
func (r *running) ask(ctx context.Context, key string) (api.Request, error) {
	ana, err := r.agent.client(r.settings, requester)
	if err != nil {
		return api.Request{}, err
	}
	request, err := ana.CreateRequest(ctx, api.CreateRequest{Target: targetName, Key: api.NewKey(key), Reason: requestReason})
	if err != nil {
		return request, fmt.Errorf("%s requests the release of %s: %w", requester, key, err)
	}
	e := request.Evidence
	r.board.tell(
		step(1, requester+" (requester) asks for the release of "+key),
		fact("request", "%s, %s: %q", request.ID, request.State, request.Reason),
		fact("lock", "%s (%s), held %d×, identity %s, %s", e.Library, e.Type, e.Count, e.Identity, expiry(e.ExpiresAtMs, request.CreatedAt)),
		fact("holder", "%s, thread %s", dash(e.Holder.Instance), dash(e.Holder.Session)),
		fact("token", "%s", short(e.TokenDigest)),
		fact("findings", "%s", dash(strings.Join(e.Findings, " "))),
		fact("evidence", "%s", short(request.EvidenceHash)),
	)
	return request, nil
}

// tryAlone shows that one person is not enough.
func (r *running) tryAlone(ctx context.Context, request api.Request) error {
	ana, err := r.agent.client(r.settings, requester)
	if err != nil {
		return err
	}
	_, err = ana.Approve(ctx, request.ID, api.Decide{Reason: approveReason, EvidenceHash: request.EvidenceHash})
	if !errors.Is(err, locksteward.ErrRefused) {
		return fmt.Errorf("%s approves their own request: want a refusal, got %v", requester, err)
	}
	r.board.tell(step(2, requester+" tries to approve it, too"), fact("answer", "%v", err))
	return nil
}

// approve is bo's approval, which carries the release out.
func (r *running) approve(ctx context.Context, request api.Request) (api.Request, error) {
	bo, err := r.agent.client(r.settings, approver)
	if err != nil {
		return api.Request{}, err
	}
	// What bo reads is what bo approves: the hash says so.
	seen, err := bo.Request(ctx, request.ID)
	if err != nil {
		return api.Request{}, fmt.Errorf("%s reads request %s: %w", approver, request.ID, err)
	}
	done, err := bo.Approve(ctx, seen.ID, api.Decide{Reason: approveReason, EvidenceHash: seen.EvidenceHash})
	if err != nil {
		return api.Request{}, fmt.Errorf("%s approves request %s: %w", approver, request.ID, err)
	}
	if done.State != string(locksteward.RequestReleased) {
		return api.Request{}, fmt.Errorf("request %s was approved and is %s, want released: %s", done.ID, done.State, done.Outcome)
	}
	r.board.tell(
		step(3, approver+" (approver) reads the evidence and approves it"),
		fact("reason", "%q", approveReason),
		fact("outcome", "%s: %s", done.State, done.Outcome),
	)
	return done, nil
}

// wokeUp waits until the client that waited has the lock.
func (r *running) wokeUp(ctx context.Context, approved time.Time, done api.Request) error {
	if err := r.board.await(ctx, func(s *state) bool { return s.woken != nil }); err != nil {
		return fmt.Errorf("request %s woke %d clients, but the one that waits did not get the lock: %w", done.ID, done.WaitersWoken, err)
	}
	var w woken
	r.board.look(func(s *state) { w = *s.woken })
	r.board.tell(
		step(4, "the client that waited is awake and has the lock, "+duration(w.at.Sub(approved))+" after the approval was sent"),
		fact("woken on", "%s", w.channel),
		fact("holder", "%s", w.id),
	)
	return nil
}

// trail shows the audit entries of the request.
func (r *running) trail(ctx context.Context, id string) error {
	bo, err := r.agent.client(r.settings, approver)
	if err != nil {
		return err
	}
	list, err := bo.Audit(ctx, 0)
	if err != nil {
		return fmt.Errorf("read the audit trail: %w", err)
	}
	entries := slices.DeleteFunc(list.Entries, func(e api.Entry) bool { return e.Subject != id })
	if len(entries) < 3 {
		return fmt.Errorf("the audit trail has %d entries about request %s, want one for each step", len(entries), id)
	}
	slices.Reverse(entries) // They come newest first.
	rows := make([]line, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, line{
			{text: fmt.Sprintf("   %3d", e.Seq), style: dim},
			{text: e.At.Local().Format("15:04:05.000"), style: dim},
			{text: e.Actor},
			{text: e.Action},
			{text: dash(api.OutcomeWords(e.Outcome))},
			{text: "hash " + short(e.Hash), style: dim},
		})
	}
	r.board.tell(step(5, "the audit trail has it, each entry chained to the one before"), columns(rows)...)
	return nil
}

// step begins a step of the story.
func step(n int, what string) line {
	return line{{text: fmt.Sprintf("  %d  ", n), style: cyan}, {text: what, style: bold}}
}

// fact is a detail of a step.
func fact(name, format string, args ...any) line {
	return line{{text: "     " + pad(name, 9) + " ", style: dim}, {text: fmt.Sprintf(format, args...)}}
}

func expiry(atMs int64, now time.Time) string {
	switch {
	case atMs < 0:
		return "never expires"
	case atMs == 0:
		return "expiry not known"
	default:
		return "expires in " + duration(time.UnixMilli(atMs).Sub(now))
	}
}

// short is the beginning of a digest, enough to compare by eye.
func short(digest string) string {
	kind, hex, found := strings.Cut(digest, ":")
	if !found {
		return clip(digest, 17)
	}
	return kind + ":" + clip(hex, 17)
}
