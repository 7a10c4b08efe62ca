package users

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"

	"golang.org/x/crypto/bcrypt"
)

// User is one person or program with its roles. It carries no secret.
type User struct {
	Name  string
	Roles []Role
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

// Set is the users of one file. The nil Set has no users.
type Set struct {
	accounts []account

	// checking bounds the processor time that wrong passwords can burn: bcrypt
	// is slow by design.
	checking chan struct{}
}

type account struct {
	user     User
	tokens   [][sha256.Size]byte
	password []byte // bcrypt; nil: no password
}

func newSet(accounts []account) *Set {
	return &Set{accounts: accounts, checking: make(chan struct{}, 2)}
}

// Len is how many users there are; 0 means that nothing can be changed.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.accounts)
}

// Users returns a copy of the users in the order of the file.
func (s *Set) Users() []User {
	out := make([]User, 0, s.Len())
	for i := range s.Len() {
		out = append(out, s.accounts[i].user)
	}
	return out
}

// Authenticate returns whose API token this is. It compares with every token of
// the file in constant time.
func (s *Set) Authenticate(token string) (User, bool) {
	if s == nil || token == "" {
		return User{}, false
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
	if found < 0 {
		return User{}, false
	}
	return s.accounts[found].user, true
}

// AuthenticatePassword checks a name with a password, or with one of the user's
// API tokens in its place, which is what a browser can send. An unknown name
// costs as much time as a wrong password.
func (s *Set) AuthenticatePassword(name, password string) (User, bool) {
	if s == nil || password == "" {
		return User{}, false
	}
	if u, ok := s.Authenticate(password); ok {
		return u, u.Name == name
	}
	var user User
	hash := unknownUser
	for _, a := range s.accounts {
		if a.user.Name == name && a.password != nil {
			user, hash = a.user, a.password
		}
	}
	s.checking <- struct{}{}
	err := bcrypt.CompareHashAndPassword(hash, []byte(password))
	<-s.checking
	if err != nil || user.Name == "" {
		return User{}, false
	}
	return user, true
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
