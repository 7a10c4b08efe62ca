package users

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// User is one person or program with its roles. It carries no secret.
type User struct {
	Name  string
	Roles []Role
	// Teams are what classes[].approvers may name as team:NAME.
	Teams []string
}

// Can says whether one of the user's roles grants the verb.
func (u User) Can(v Verb) bool {
	for _, r := range u.Roles {
		if slices.Contains(grants[r], v) {
			return true
		}
	}
	return false
}

// Account is a user with what the file says of how they sign in.
type Account struct {
	User
	// Disabled users can do nothing.
	Disabled bool
	// External users may sign in through a trusted proxy or an OIDC provider, which
	// then says who they are.
	External bool
	// Tokens is how many API tokens there are, Password how it is hashed: "bcrypt",
	// "argon2id" or "" for none.
	Tokens   int
	Password string
}

// What [Set.AuthenticatePassword] fails with.
var (
	// ErrNoMatch is a wrong name or a wrong password, or a user who is disabled.
	ErrNoMatch = errors.New("name or password is wrong")
	// ErrBusy is a context that ended before the password could be checked.
	ErrBusy = errors.New("too many passwords are being checked")
)

// checksAtOnce bounds the processor time and the memory that wrong passwords can
// burn.
const checksAtOnce = 2

// Set is the users of one file. The nil Set has no users.
type Set struct {
	accounts []account
	checking chan struct{}
	// salt makes the decoy hash of an unknown name stable and unpredictable.
	salt [16]byte
}

type account struct {
	user               User
	disabled, external bool
	tokens             [][sha256.Size]byte
	password           hash
}

func newSet(accounts []account) *Set {
	s := &Set{accounts: accounts, checking: make(chan struct{}, checksAtOnce)}
	_, _ = rand.Read(s.salt[:])
	return s
}

// Len is how many users there are, disabled ones too; 0 means that nothing can
// be changed.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.accounts)
}

// Users returns a copy of the users who are not disabled, in the order of the
// file.
func (s *Set) Users() []User {
	out := make([]User, 0, s.Len())
	for _, a := range s.Accounts() {
		if !a.Disabled {
			out = append(out, a.User)
		}
	}
	return out
}

// Accounts returns a copy of all users, in the order of the file.
func (s *Set) Accounts() []Account {
	out := make([]Account, 0, s.Len())
	for i := range s.Len() {
		out = append(out, s.accounts[i].public())
	}
	return out
}

func (a account) public() Account {
	return Account{User: a.user, Disabled: a.disabled, External: a.external, Tokens: len(a.tokens), Password: a.password.scheme()}
}

// Find returns the user of a name. Names that differ in case alone are one user.
func (s *Set) Find(name string) (Account, bool) {
	i := s.find(name)
	if i < 0 {
		return Account{}, false
	}
	return s.accounts[i].public(), true
}

func (s *Set) find(name string) int {
	if s == nil {
		return -1
	}
	return slices.IndexFunc(s.accounts, func(a account) bool { return strings.EqualFold(a.user.Name, name) })
}

// Authenticate returns whose API token this is. It compares with every token of
// the file in constant time.
func (s *Set) Authenticate(token string) (User, bool) {
	i, _ := s.byToken(token)
	if i < 0 {
		return User{}, false
	}
	return s.accounts[i].user, true
}

func (s *Set) byToken(token string) (int, string) {
	if s == nil || token == "" {
		return -1, ""
	}
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i, a := range s.accounts {
		for _, want := range a.tokens {
			if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 {
				found = i
			}
		}
	}
	if found < 0 || s.accounts[found].disabled {
		return -1, ""
	}
	return found, proofDigest(sum[:])
}

// AuthenticatePassword checks a name with a password, or with one of the user's
// API tokens in its place, which is what a browser can send. It returns the user
// and a stamp of what they proved themselves with, see [Set.HasProof]. An unknown
// name costs as much time as a wrong password. Few passwords are checked at once;
// ctx bounds the wait. The error is [ErrNoMatch] or [ErrBusy].
func (s *Set) AuthenticatePassword(ctx context.Context, name, password string) (User, string, error) {
	if s == nil || password == "" || len(password) > maxPassword {
		return User{}, "", ErrNoMatch
	}
	if i, mark := s.byToken(password); i >= 0 {
		if s.accounts[i].user.Name != name {
			return User{}, "", ErrNoMatch
		}
		return s.accounts[i].user, mark, nil
	}
	known := slices.IndexFunc(s.accounts, func(a account) bool {
		return a.user.Name == name && a.password.text != "" && !a.disabled
	})
	against := s.decoyHash(name)
	if known >= 0 {
		against = s.accounts[known].password
	}
	select {
	case s.checking <- struct{}{}:
	case <-ctx.Done():
		return User{}, "", ErrBusy
	}
	ok := against.matches(password)
	<-s.checking
	if !ok || known < 0 {
		return User{}, "", ErrNoMatch
	}
	return s.accounts[known].user, proofDigest([]byte(against.text)), nil
}

// HasProof says whether what a stamp was made of still is a password or an API token
// of the user: a session ends with what it was begun with.
func (s *Set) HasProof(name, mark string) bool {
	i := s.find(name)
	if i < 0 || s.accounts[i].disabled {
		return false
	}
	a := s.accounts[i]
	if a.password.text != "" && proofDigest([]byte(a.password.text)) == mark {
		return true
	}
	return slices.ContainsFunc(a.tokens, func(sum [sha256.Size]byte) bool { return proofDigest(sum[:]) == mark })
}

// proofDigest is a digest of a digest: enough to recognise it by, and useless for a
// sign-in.
func proofDigest(proof []byte) string {
	sum := sha256.Sum256(append([]byte("locksteward sign-in\x00"), proof...))
	return hex.EncodeToString(sum[:16])
}

// decoyHash is the hash that a password is compared with where the name has none:
// one of the others', always the same for a name, so that neither the time nor
// how it differs from name to name tells who there is.
func (s *Set) decoyHash(name string) hash {
	var all []hash
	for _, a := range s.accounts {
		if a.password.text != "" {
			all = append(all, a.password)
		}
	}
	if len(all) == 0 {
		return hash{text: string(unknownUser)}
	}
	sum := sha256.Sum256(append(s.salt[:], name...))
	return all[binary.BigEndian.Uint64(sum[:8])%uint64(len(all))]
}

// unknownUser is a bcrypt hash of cost 10 that no password is known for.
var unknownUser = []byte("$2a$10$7EqJtq98hPqEX7fNZaFWoOhi5u2r3u3vL8cFXcjqB5uqBqv8l3K1u")

// Warnings says in sentences what cannot work with these users: a request that
// nobody could make or approve.
func (s *Set) Warnings() []string {
	if s.Len() == 0 {
		return nil
	}
	var requesters, approvers []string
	for _, u := range s.Users() {
		if u.Can(VerbRequest) {
			requesters = append(requesters, u.Name)
		}
		if u.Can(VerbApprove) {
			approvers = append(approvers, u.Name)
		}
	}
	var out []string
	switch {
	case len(requesters) == 0:
		out = append(out, "nobody can request a release: no user has the role requester")
	case len(approvers) == 0:
		out = append(out, "nobody can ever approve a release: no user has the role approver")
	case len(approvers) == 1 && len(requesters) == 1 && approvers[0] == requesters[0]:
		out = append(out, "the only requester is the only approver: nobody can ever approve where self_approval is deny")
	}
	if len(requesters) == 0 && len(approvers) == 0 {
		out = append(out, "nobody can ever approve a release: no user has the role approver")
	}
	return out
}
