package demo

import (
	"bytes"
	"crypto/rand"
	_ "embed" // for the configuration
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/template"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/users"
)

// The people of the demo.
const (
	requester = "ana"
	approver  = "bo"
	guest     = "guest"
)

// targetName is how the configuration calls the server.
const targetName = "demo"

// settings are what the agent and its users need, in a directory of this run.
type settings struct {
	dir    string
	config config.Config
	// tokens are the API tokens of the people.
	tokens map[string]locksteward.Secret
	// signing is the key that alerts are signed with.
	signing []byte
}

//go:embed locksteward.yaml.tmpl
var configText string

var configTemplate = template.Must(template.New("configuration").Funcs(template.FuncMap{
	// A double-quoted YAML scalar takes all that Go writes for text and paths.
	"quote": strconv.Quote,
}).Parse(configText))

// configValues are what the template is filled with.
type configValues struct {
	Target, URL, Username, PasswordFile string
	CAFile, CertFile, KeyFile           string
	Prefix, Companions                  string
	Hook, HookSecretFile                string
	Store, UsersFile                    string
	Metrics, Console                    string
	OrderExpect, ServerShare            string
}

// newSettings writes a real configuration, with two people who can release a
// lock between them and one who can look, and loads it as `run` would.
func newSettings(dir string, s *server, hook string, anyPorts bool) (*settings, error) {
	out := &settings{dir: dir, tokens: map[string]locksteward.Secret{}, signing: make([]byte, 32)}
	// crypto/rand.Read never returns an error since Go 1.24.
	_, _ = rand.Read(out.signing)
	v := configValues{
		Target: targetName, URL: s.connect.URL, Username: s.connect.Username,
		CAFile: s.connect.CAFile, CertFile: s.connect.CertFile, KeyFile: s.connect.KeyFile,
		Prefix: s.scene.prefix, Companions: s.scene.companions(), Hook: hook,
		HookSecretFile: filepath.Join(dir, "hook-key"),
		Store:          "sqlite:" + filepath.Join(dir, "locksteward.db"), UsersFile: filepath.Join(dir, "users.yaml"),
		Metrics: listen(metricsListen, anyPorts), Console: listen(consoleListen, anyPorts),
		OrderExpect: orderExpect.String(), ServerShare: s.share,
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString(out.signing)
	if err := os.WriteFile(v.HookSecretFile, []byte(secret+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the demo's settings: %w", err)
	}
	if s.connect.Password != "" {
		v.PasswordFile = filepath.Join(dir, "redis-password")
		if err := os.WriteFile(v.PasswordFile, []byte(s.connect.Password.Reveal()+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("write the demo's settings: %w", err)
		}
	}
	for name, role := range map[string]users.Role{
		requester: users.RoleRequester, approver: users.RoleApprover, guest: users.RoleViewer,
	} {
		token, err := users.Add(v.UsersFile, name, []users.Role{role})
		if err != nil {
			return nil, err
		}
		out.tokens[name] = token
	}
	var b bytes.Buffer
	if err := configTemplate.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("write the demo's configuration: %w", err)
	}
	if err := os.WriteFile(out.file(), b.Bytes(), 0o600); err != nil {
		return nil, fmt.Errorf("write the demo's configuration: %w", err)
	}
	var err error
	if out.config, err = out.load(); err != nil {
		return nil, fmt.Errorf("the demo's configuration is wrong:\n%w", err)
	}
	return out, nil
}

func (s *settings) file() string { return filepath.Join(s.dir, "locksteward.yaml") }

func (s *settings) load() (config.Config, error) { return config.Load(s.file()) }
