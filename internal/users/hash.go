package users

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward"
)

// What a stored hash may ask of the machine that checks a password against it. The
// lower bound is the least that OWASP's password storage cheat sheet names.
const (
	argonMinMemory = 7 << 10   // KiB
	argonMaxMemory = 128 << 10 // KiB
	argonMaxPasses = 10
	argonMaxLanes  = 8
	argonMaxWork   = 512 << 10 // KiB, all passes together
	bcryptMaxCost  = 14
)

// What [HashPassword] asks: some 60 ms of one core, 32 MiB.
const (
	argonMemory = 32 << 10 // KiB
	argonPasses = 3
	argonLanes  = 1
	argonSalt   = 16
	argonSum    = 32
)

// maxPassword is the longest password in bytes.
const maxPassword = 1024

// minPassword is the shortest password that [HashPassword] takes, in bytes.
const minPassword = 10

// hash is a password as the file keeps it.
type hash struct {
	text  string
	argon *argon // nil: bcrypt
}

// argon is what an argon2id hash says of itself.
type argon struct {
	memory, passes uint32
	lanes          uint8
	salt, sum      []byte
}

// phc is the PHC string format of argon2id: the parameters in this order, salt
// and hash in base64 without padding.
// https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md
var phc = regexp.MustCompile(`^\$argon2id\$v=19\$m=([0-9]{1,9}),t=([0-9]{1,4}),p=([0-9]{1,3})\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$`)

// errHash is about text that is no hash; it does not show it, since a person may
// have pasted the password.
var errHash = errors.New("is neither a bcrypt hash nor `$argon2id$v=19$m=…,t=…,p=…$salt$hash`: run `locksteward users change NAME --password`")

// parseHash reads a bcrypt or argon2id hash.
func parseHash(text string) (hash, error) {
	if cost, err := bcrypt.Cost([]byte(text)); err == nil {
		if cost > bcryptMaxCost {
			return hash{}, fmt.Errorf("has a bcrypt cost of %d: at most %d, or each sign-in would take seconds", cost, bcryptMaxCost)
		}
		return hash{text: text}, nil
	}
	m := phc.FindStringSubmatch(text)
	if m == nil {
		return hash{}, errHash
	}
	var n [3]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(m[i+1], 10, 32); err != nil {
			return hash{}, errHash
		}
	}
	a := &argon{memory: uint32(n[0]), passes: uint32(n[1]), lanes: uint8(min(n[2], 255))}
	var err, sumErr error
	a.salt, err = base64.RawStdEncoding.Strict().DecodeString(m[4])
	a.sum, sumErr = base64.RawStdEncoding.Strict().DecodeString(m[5])
	if err != nil || sumErr != nil {
		return hash{}, errHash
	}
	switch {
	case a.memory < argonMinMemory || a.memory > argonMaxMemory:
		return hash{}, fmt.Errorf("has m=%d: argon2id takes %d to %d KiB here", a.memory, argonMinMemory, argonMaxMemory)
	case a.passes < 1 || a.passes > argonMaxPasses || uint64(a.memory)*uint64(a.passes) > argonMaxWork:
		return hash{}, fmt.Errorf("has t=%d with m=%d: argon2id takes 1 to %d passes here, and t times m at most %d", a.passes, a.memory, argonMaxPasses, argonMaxWork)
	case a.lanes < 1 || a.lanes > argonMaxLanes:
		return hash{}, fmt.Errorf("has p=%d: argon2id takes 1 to %d lanes here", n[2], argonMaxLanes)
	case len(a.salt) < 8 || len(a.salt) > 64 || len(a.sum) < 16 || len(a.sum) > 64:
		return hash{}, fmt.Errorf("has a salt of %d and a hash of %d bytes: argon2id takes 8 to 64 and 16 to 64 here", len(a.salt), len(a.sum))
	}
	return hash{text: text, argon: a}, nil
}

// scheme names how the password was hashed, "" for no hash.
func (h hash) scheme() string {
	switch {
	case h.argon != nil:
		return "argon2id"
	case h.text != "":
		return "bcrypt"
	default:
		return ""
	}
}

// matches says whether this is the password. It is slow by design.
func (h hash) matches(password string) bool {
	if h.argon == nil {
		return bcrypt.CompareHashAndPassword([]byte(h.text), []byte(password)) == nil
	}
	a := h.argon
	sum := argon2.IDKey([]byte(password), a.salt, a.passes, a.memory, a.lanes, uint32(len(a.sum)))
	return subtle.ConstantTimeCompare(sum, a.sum) == 1
}

// HashPassword returns what the users file keeps of a password: argon2id in the
// PHC string format. An error wraps locksteward.ErrInvalid and does not show the
// password.
func HashPassword(password locksteward.Secret) (locksteward.Secret, error) {
	if n := len(password.Reveal()); n < minPassword || n > maxPassword {
		return "", fmt.Errorf("%w: a password has %d to %d bytes, this one has %d", locksteward.ErrInvalid, minPassword, maxPassword, n)
	}
	salt := make([]byte, argonSalt)
	// crypto/rand.Read never returns an error since Go 1.24.
	_, _ = rand.Read(salt)
	sum := argon2.IDKey([]byte(password.Reveal()), salt, argonPasses, argonMemory, argonLanes, argonSum)
	enc := base64.RawStdEncoding
	return locksteward.Secret(fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s",
		argonMemory, argonPasses, argonLanes, enc.EncodeToString(salt), enc.EncodeToString(sum))), nil
}
