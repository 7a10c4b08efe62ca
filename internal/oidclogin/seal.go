package oidclogin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// sealer encrypts and signs what a browser keeps for us. The key lives as long as
// the process: a sign-in that is under way at a restart has to be begun again.
type sealer struct{ aead cipher.AEAD }

func newSealer() (sealer, error) {
	key := make([]byte, 32)
	// crypto/rand.Read never returns an error since Go 1.24.
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, fmt.Errorf("make key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return sealer{}, fmt.Errorf("make key: %w", err)
	}
	return sealer{aead}, nil
}

func (s sealer) seal(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, raw, nil)), nil
}

var errSeal = errors.New("open seal: it is not ours")

func (s sealer) open(text string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, raw, nil)
	if err != nil {
		return errSeal
	}
	return json.Unmarshal(plain, into)
}
