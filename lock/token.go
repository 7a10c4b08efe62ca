package lock

import "crypto/rand"

// newID returns 130 random bits as 26 characters of base32: an acquisition id,
// or the secret behind it.
func newID() string { return rand.Text() }
