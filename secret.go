package locksteward

import "fmt"

// SecretMask is what a [Secret] shows instead of itself.
const SecretMask = "<secret>"

// Secret is a password, token or key. It prints, logs and marshals as
// [SecretMask], so that no call site can leak it by accident; only
// [Secret.Reveal] gives the text. The empty secret shows as the empty string.
type Secret string

// Reveal returns the secret itself, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String returns [SecretMask], or "" for the empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return SecretMask
}

// GoString masks the secret under %#v too.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format masks the secret under every verb.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' || f.Flag('#') {
		fmt.Fprintf(f, "%q", s.String())
		return
	}
	fmt.Fprint(f, s.String())
}

// MarshalText masks the secret in JSON, YAML and every other text encoding.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the secret as it is written.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}
