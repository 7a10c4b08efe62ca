package signin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/users"
)

// The sources of sessions.
const (
	SourcePassword = "password"
	SourceOIDC     = "oidc"
)

// Session is a browser that is signed in, as it is kept.
type Session struct {
	// Digest is the SHA-256, in hex, of the id that the browser alone has.
	Digest string
	User   string
	Source string
	// Stamp recognises the password or token that a session began with.
	Stamp string
	// Roles and Teams are those that an OIDC provider gave.
	Roles, Teams           []string
	Created, Seen, Expires time.Time
}

// Store keeps sessions, and the audit trail of signing in and out.
type Store interface {
	// SaveSession keeps a new session with the entries about it, both or neither.
	SaveSession(ctx context.Context, s Session, entries ...locksteward.Entry) error
	// LoadSession returns a session; none is an error that wraps
	// locksteward.ErrNotFound.
	LoadSession(ctx context.Context, digest string) (Session, error)
	// TouchSession notes when a session was seen. One that is gone is no error.
	TouchSession(ctx context.Context, digest string, seen time.Time) error
	// EndSession forgets a session, with the entries about it. One that is gone is
	// no error, and then nothing is written.
	EndSession(ctx context.Context, digest string, entries ...locksteward.Entry) error
	// AppendEntries writes audit entries.
	AppendEntries(ctx context.Context, entries ...locksteward.Entry) error
}

// idBytes is the length of a session's id.
const idBytes = 32

// newID returns a session's id and the digest that is kept of it.
func newID() (id, digest string) {
	raw := make([]byte, idBytes)
	// crypto/rand.Read never returns an error since Go 1.24.
	_, _ = rand.Read(raw)
	id = base64.RawURLEncoding.EncodeToString(raw)
	return id, digestOf(id)
}

func digestOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// short names a session in the audit trail and in logs.
func short(digest string) string { return digest[:min(12, len(digest))] }

// formToken is what forms carry that are shown in a session: it follows from the
// id, so that the store cannot give it away, and does not tell the id.
func formToken(secret []byte, what string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("locksteward form\x00" + what))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// bySession returns who a session's id belongs to; false if there is none, or it
// is over. Only what a person did prolongs it.
func (d *Desk) bySession(ctx context.Context, id string, attended bool) (Who, bool, error) {
	if n, err := base64.RawURLEncoding.DecodeString(id); err != nil || len(n) != idBytes {
		return Who{}, false, nil
	}
	digest := digestOf(id)
	s, err := d.loadSession(ctx, digest)
	if errors.Is(err, locksteward.ErrNotFound) {
		return Who{}, false, nil
	}
	if err != nil {
		return Who{}, false, err
	}
	now := d.now()
	user, ok := userOf(d.users(), s)
	if !ok || !now.Before(s.Expires) || now.Sub(s.Seen) >= d.cfg.Session.Idle {
		d.over(ctx, s)
		return Who{}, false, nil
	}
	if attended && now.Sub(s.Seen) >= min(d.cfg.Session.Idle/10, time.Minute) {
		s.Seen = now
		d.seen.put(digest, s)
		if err := d.store.TouchSession(ctx, digest, now); err != nil && ctx.Err() == nil {
			d.log.Warn("session is not prolonged", zap.String("user", s.User), zap.Error(err))
		}
	}
	return Who{User: user, By: BySession, Session: s, token: formToken([]byte(id), "session")}, true, nil
}

// loadSession asks the store; while that is away, what it said last counts.
func (d *Desk) loadSession(ctx context.Context, digest string) (Session, error) {
	s, err := d.store.LoadSession(ctx, digest)
	switch {
	case err == nil:
		// A write may have failed that made it younger.
		if kept, ok := d.seen.get(digest); ok && kept.Seen.After(s.Seen) {
			s.Seen = kept.Seen
		}
		d.seen.put(digest, s)
	case errors.Is(err, locksteward.ErrNotFound):
		d.seen.drop(digest)
	default:
		if kept, ok := d.seen.get(digest); ok {
			return kept, nil
		}
	}
	return s, err
}

// over forgets a session that is of no use any more.
func (d *Desk) over(ctx context.Context, s Session) {
	d.seen.drop(s.Digest)
	if err := d.store.EndSession(ctx, s.Digest); err != nil && ctx.Err() == nil {
		d.log.Warn("session that is over is not forgotten", zap.String("user", s.User), zap.Error(err))
	}
}

// userOf returns who the session's user is by the users file now; false if they
// may not be signed in like this any more.
func userOf(set *users.Set, s Session) (users.User, bool) {
	account, known := set.Find(s.User)
	if s.Source != SourceOIDC {
		return account.User, known && !account.Disabled && account.Name == s.User && set.Holds(s.User, s.Stamp)
	}
	if known && (account.Disabled || !account.External) {
		return users.User{}, false
	}
	out := users.User{Name: s.User, Roles: slices.Clone(account.Roles), Teams: slices.Clone(account.Teams)}
	for _, text := range s.Roles {
		if role, err := users.ParseRole(text); err == nil && !slices.Contains(out.Roles, role) {
			out.Roles = append(out.Roles, role)
		}
	}
	for _, team := range s.Teams {
		if !slices.Contains(out.Teams, team) {
			out.Teams = append(out.Teams, team)
		}
	}
	return out, len(out.Roles) > 0
}

// begin makes a session and returns its id. The one that the browser had before
// ends: nobody can have given it to them.
func (d *Desk) begin(ctx context.Context, before string, s Session, entry locksteward.Entry) (string, error) {
	now := d.now()
	id, digest := newID()
	s.Digest, s.Created, s.Seen, s.Expires = digest, now, now, now.Add(d.cfg.Session.MaxAge)
	entry.Subject = short(digest)
	if err := d.store.SaveSession(ctx, s, entry); err != nil {
		return "", err
	}
	d.seen.put(digest, s)
	if before != "" {
		d.over(ctx, Session{Digest: digestOf(before), User: s.User})
	}
	return id, nil
}

// SignOut ends the session of a browser.
func (d *Desk) SignOut(ctx context.Context, who Who) error {
	if who.By != BySession {
		return nil
	}
	d.seen.drop(who.Session.Digest)
	return d.store.EndSession(ctx, who.Session.Digest, locksteward.Entry{
		At: d.now(), Actor: who.User.Name, Action: ActionSignOut, Subject: short(who.Session.Digest), Outcome: "ok",
	})
}

// inert makes a name that a stranger typed fit for logs and the audit trail. What
// looks like a token is not shown: it was typed into the wrong field.
func inert(name string) string {
	const most = 32
	if strings.Contains(name, users.TokenPrefix) {
		return locksteward.SecretMask
	}
	runes := []rune(strings.ToValidUTF8(name, "\ufffd"))
	cut := ""
	if len(runes) > most {
		runes, cut = runes[:most], "…"
	}
	return locksteward.DisplayKey(string(runes)) + cut
}
