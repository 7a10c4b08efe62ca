package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Names of the Standard Webhooks 1.0 headers.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const secretPrefix = "whsec_"

// parseSecret reads a signing secret. Its errors do not show it.
func parseSecret(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil {
		return nil, errors.New("must be whsec_ and base64")
	}
	if len(key) < 24 || len(key) > 64 {
		return nil, fmt.Errorf("must be 24 to 64 bytes in base64, got %d: `openssl rand -base64 32` makes one", len(key))
	}
	return key, nil
}

// oneSecret reports more than one signing secret of a robot.
func (r Receiver) oneSecret() []error {
	key, n := "secret_files", len(r.SecretFiles)
	if len(r.Secrets) > 0 {
		key, n = "secrets", len(r.Secrets)
	}
	if n <= 1 {
		return nil
	}
	return []error{fmt.Errorf("%s: must be one, got %d: a robot of %s has one signing secret", key, n, r.Kind)}
}

// signingSecret returns the one signing secret of a robot; "" if it has none. Its error begins
// with the key.
func (fs *files) signingSecret(e Endpoint) (locksteward.Secret, error) {
	var held locksteward.Secret
	var file string
	if len(e.Secrets) > 0 {
		held = e.Secrets[0]
	}
	if len(e.SecretFiles) > 0 {
		file = e.SecretFiles[0]
	}
	return fs.secretOr(held, "secret_files[0]", file)
}

// signature returns the value of the signature header: one v1 signature for
// each secret, over "id.timestamp.body".
func signature(secrets [][]byte, id string, at time.Time, body []byte) string {
	signed := make([]string, 0, len(secrets))
	for _, key := range secrets {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signed = append(signed, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signed, " ")
}
