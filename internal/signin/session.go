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
	SourcePassword = "password" // or an API token in its place
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

// shortDigest names a session in the audit trail and in logs.
func shortDigest(digest string) string { return digest[:min(12, len(digest))] }

// formToken is what forms carry that are shown in a session: it follows from the
// id, so that the store cannot give it away, and does not tell the id.
func formToken(secret []byte, what string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("locksteward form\x00" + what))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// fromSession returns who a session's id belongs to; false if there is none, or it
// is over. Only what a person did prolongs it.
func (a *Authenticator) fromSession(ctx context.Context, id string, attended bool) (Principal, bool, error) {
	if n, err := base64.RawURLEncoding.DecodeString(id); err != nil || len(n) != idBytes {
		return Principal{}, false, nil
	}
	digest := digestOf(id)
	s, err := a.loadSession(ctx, digest)
	if errors.Is(err, locksteward.ErrNotFound) {
		return Principal{}, false, nil
	}
	if err != nil {
		return Principal{}, false, err
	}
	now := a.now()
	user, ok := userOf(a.users(), s)
	if !ok || !now.Before(s.Expires) || now.Sub(s.Seen) >= a.cfg.Session.Idle {
		a.endSession(ctx, s)
		return Principal{}, false, nil
	}
	if attended && now.Sub(s.Seen) >= min(a.cfg.Session.Idle/10, time.Minute) {
		s.Seen = now
		a.sessionCache.put(digest, s)
		if err := a.store.TouchSession(ctx, digest, now); err != nil && ctx.Err() == nil {
			a.log.Warn("session is not prolonged", zap.String("user", s.User), zap.Error(err))
		}
	}
	return Principal{User: user, Method: MethodSession, Session: s, token: formToken([]byte(id), "session")}, true, nil
}

// loadSession asks the store; while that is away, what it said last counts.
func (a *Authenticator) loadSession(ctx context.Context, digest string) (Session, error) {
	s, err := a.store.LoadSession(ctx, digest)
	switch {
	case err == nil:
		// A write may have failed that made it younger.
		if kept, ok := a.sessionCache.get(digest); ok && kept.Seen.After(s.Seen) {
			s.Seen = kept.Seen
		}
		a.sessionCache.put(digest, s)
	case errors.Is(err, locksteward.ErrNotFound):
		a.sessionCache.remove(digest)
	default:
		if kept, ok := a.sessionCache.get(digest); ok {
			return kept, nil
		}
	}
	return s, err
}

// endSession forgets a session that is of no use any more.
func (a *Authenticator) endSession(ctx context.Context, s Session) {
	a.sessionCache.remove(s.Digest)
	if err := a.store.EndSession(ctx, s.Digest); err != nil && ctx.Err() == nil {
		a.log.Warn("session that is over is not forgotten", zap.String("user", s.User), zap.Error(err))
	}
}

// userOf returns who the session's user is by the users file now; false if they
// may not be signed in like this any more.
func userOf(set *users.Set, s Session) (users.User, bool) {
	account, known := set.Find(s.User)
	if s.Source != SourceOIDC {
		return account.User, known && !account.Disabled && account.Name == s.User && set.HasProof(s.User, s.Stamp)
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

// saveSession makes a session and returns its id. The one that the browser had before
// ends: nobody can have given it to them.
func (a *Authenticator) saveSession(ctx context.Context, before string, s Session, entry locksteward.Entry) (string, error) {
	now := a.now()
	id, digest := newID()
	s.Digest, s.Created, s.Seen, s.Expires = digest, now, now, now.Add(a.cfg.Session.MaxAge)
	entry.Subject = shortDigest(digest)
	if err := a.store.SaveSession(ctx, s, entry); err != nil {
		return "", err
	}
	a.sessionCache.put(digest, s)
	if before != "" {
		a.endSession(ctx, Session{Digest: digestOf(before), User: s.User})
	}
	return id, nil
}

// SignOut ends the session of a browser.
func (a *Authenticator) SignOut(ctx context.Context, who Principal) error {
	if who.Method != MethodSession {
		return nil
	}
	a.sessionCache.remove(who.Session.Digest)
	return a.store.EndSession(ctx, who.Session.Digest, locksteward.Entry{
		At: a.now(), Actor: who.User.Name, Action: ActionSignOut, Subject: shortDigest(who.Session.Digest), Outcome: "ok",
	})
}

// printableName makes a name that a stranger typed fit for logs and the audit trail. What
// looks like a token is not shown: it was typed into the wrong field.
func printableName(name string) string {
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
