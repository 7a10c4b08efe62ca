package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// keyBeside is behind the name of an SQLite file in the name of its key.
const keyBeside = ".audit-key"

// maxKeyFile bounds what is read of a file that should be a key.
const maxKeyFile = 64 << 10

// MakeKey is the command that writes a new key to FILE, with mode 0600.
const MakeKey = "openssl genpkey -algorithm ed25519 -out FILE"

// Key signs checkpoints (Ed25519, RFC 8032).
type Key struct{ private ed25519.PrivateKey }

// String masks the key.
func (Key) String() string { return locksteward.SecretMask }

// GoString masks the key under %#v too.
func (Key) GoString() string { return locksteward.SecretMask }

// Public returns the half that everybody may have.
func (k Key) Public() PublicKey {
	public, _ := k.private.Public().(ed25519.PublicKey)
	return PublicKey{public}
}

// PublicKey checks what a [Key] signed.
type PublicKey struct{ key ed25519.PublicKey }

// der is the key as PKIX has it; it cannot fail for a key of this kind.
func (p PublicKey) der() []byte {
	raw, _ := x509.MarshalPKIXPublicKey(p.key)
	return raw
}

// ID names the key: "ed25519:" and 16 hex digits of the SHA-256 of its DER form.
func (p PublicKey) ID() string {
	sum := sha256.Sum256(p.der())
	return "ed25519:" + hex.EncodeToString(sum[:8])
}

// PEM returns the key as a file has it.
func (p PublicKey) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: p.der()}))
}

// Keyring are the keys whose signatures count, by their ids.
type Keyring map[string]PublicKey

// NewKeyring puts keys together.
func NewKeyring(keys ...PublicKey) Keyring {
	out := Keyring{}
	for _, k := range keys {
		out[k.ID()] = k
	}
	return out
}

// NewKey makes a key.
func NewKey() Key {
	// crypto/rand has no errors since Go 1.24, and so this has none.
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	return Key{private}
}

// WriteKey writes a key to a new file with mode 0600, whole or not at all; a file
// that is there is fs.ErrExist.
func WriteKey(file string, k Key) (err error) {
	raw, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return fmt.Errorf("write audit key: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".locksteward-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("write audit key %q: %w; name a file in a folder that can be written", file, err)
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil {
			err = errors.Join(err, rerr)
		}
	}()
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write audit key %q: %w", file, err)
	}
	// A link fails where a rename would replace a key that is needed.
	if err := os.Link(f.Name(), file); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fs.ErrExist // without the name of our own file
		}
		return fmt.Errorf("write audit key %q: %w", file, err)
	}
	return nil
}

// ReadKey reads a key as PEM (PKCS #8) from a file that only its owner can read.
func ReadKey(file string) (Key, error) {
	block, err := readPEM(file, true)
	if err != nil {
		return Key{}, err
	}
	if block.Type == "PRIVATE KEY" {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if private, ok := parsed.(ed25519.PrivateKey); err == nil && ok {
			return Key{private}, nil
		}
	}
	return Key{}, fmt.Errorf("read audit key %q: it is no Ed25519 key in PEM (PKCS #8); make one with '%s'", file, MakeKey)
}

// ReadPublicKey reads a public key as PEM, also out of the file of a private one.
func ReadPublicKey(file string) (PublicKey, error) {
	block, err := readPEM(file, false)
	if err != nil {
		return PublicKey{}, err
	}
	if block.Type == "PRIVATE KEY" {
		k, err := ReadKey(file)
		return k.Public(), err
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if public, ok := parsed.(ed25519.PublicKey); err == nil && ok {
		return PublicKey{public}, nil
	}
	return PublicKey{}, fmt.Errorf("read public key %q: it is no Ed25519 public key in PEM; 'openssl pkey -in KEYFILE -pubout' prints one", file)
}

// readPEM returns the first block of a file. Errors show nothing of its content.
func readPEM(file string, private bool) (*pem.Block, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read audit key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read audit key: %w", err)
	}
	// A group may read it: mounted Secrets and systemd's credentials come as 0440.
	if mode := info.Mode().Perm(); private && mode&^0o640 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("read audit key %q: its mode is %#o, so that others can read or change it; run chmod 600 on it", file, mode)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read audit key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("read audit key %q: it is not PEM; make a key with '%s'", file, MakeKey)
	}
	return block, nil
}

// KeyFile is where the key of a store is: the configured file, or the one beside an
// SQLite file; "" where there is none.
func KeyFile(cfg store.Config) string {
	if cfg.AuditKeyFile != "" {
		return cfg.AuditKeyFile
	}
	if file := cfg.File(); file != "" {
		return file + keyBeside
	}
	return ""
}

// NoKey is why checkpoints are not signed.
const NoKey = "store.audit_key_file is empty, and beside a database there is no place for a key; make one with '" + MakeKey + "'"

// OpenKey returns the key of a store, and makes the one beside an SQLite file where
// there is none yet. Without a key unsigned says why.
func OpenKey(cfg store.Config) (k *Key, unsigned string, err error) {
	file := KeyFile(cfg)
	if file == "" {
		return nil, NoKey, nil
	}
	read, err := ReadKey(file)
	if errors.Is(err, fs.ErrNotExist) && cfg.AuditKeyFile == "" {
		read = NewKey()
		err = WriteKey(file, read)
	}
	if err != nil {
		return nil, "", fmt.Errorf("store.audit_key_file: %w", err)
	}
	return &read, "", nil
}

// CheckKeyFile reports what is wrong with a configured key, with its path.
func CheckKeyFile(cfg store.Config) error {
	if cfg.AuditKeyFile == "" {
		return nil
	}
	if _, err := ReadKey(cfg.AuditKeyFile); err != nil {
		return fmt.Errorf("audit_key_file: %w", err)
	}
	return nil
}
