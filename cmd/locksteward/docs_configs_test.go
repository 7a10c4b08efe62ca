package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/config"
)

// topKey finds the keys at the left edge of a YAML text.
var topKey = regexp.MustCompile(`(?m)^([a-z_]+):`)

// otherYAML says by the first key of what program a YAML block is that is not
// ours; those of deploy.md are values of the chart, which deploytest renders.
var otherYAML = map[string]string{
	"scrape_configs":    "Prometheus",
	"tls_server_config": "exporter-toolkit",
	"rule_files":        "Prometheus",
	"groups":            "Prometheus",
	"route":             "Alertmanager",
	"global":            "Alertmanager",
	"inhibit_rules":     "Alertmanager",
	"receivers":         "Alertmanager",
	"users":             "a users file",
	"config":            "the chart",
	"replicas":          "the chart",
	"apiVersion":        "Kubernetes or Grafana",
}

// Every configuration of a page loads: whole files as they are, parts beside a
// target, and receivers in their list. Files that they name are there.
func TestConfigurationsInPagesLoad(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#?:?\s?([a-z_]+):`).FindAllStringSubmatch(exampleConfig(t), -1) {
		known[m[1]] = true
	}
	loaded := 0
	for page, text := range docPages(t) {
		for _, b := range docBlocks(page, text) {
			if b.language != "yaml" {
				continue
			}
			body := b.text
			switch {
			case strings.HasPrefix(body, "- name:"):
				body = "alert:\n  receivers:\n    " + strings.ReplaceAll(body, "\n", "\n    ")
			case strings.HasPrefix(body, "- alert:"):
				body = "groups:\n" + body
			case strings.HasPrefix(body, "  grouping:"):
				body = "alert:\n" + body
			}
			keys := topKey.FindAllStringSubmatch(body, -1)
			ours := len(keys) > 0
			for _, k := range keys {
				ours = ours && known[k[1]]
			}
			if !ours {
				if len(keys) == 0 || otherYAML[keys[0][1]] == "" {
					t.Errorf("%s: neither a configuration nor of a program in otherYAML: %q", b, strings.SplitN(b.text, "\n", 2)[0])
				}
				continue
			}
			loaded++
			if err := loadsInDocs(t, body); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
	if loaded == 0 {
		t.Error("no configuration found")
	}
	if loadsInDocs(t, "classes:\n  - {class: a, match: [\"a:*\"], releese: off}\n") == nil {
		t.Error("an unknown key is taken")
	}
}

func exampleConfig(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var (
	fileKey = regexp.MustCompile(`\b([a-z_]*_files?): *(\[?)([^\s,}\]#]+)`)
	inList  = regexp.MustCompile(`\b(targets|classes): *\[([a-z0-9, -]+)\]`)
	hidden  = regexp.MustCompile(`(?m)^( *- name: [^\n]*\n)( +)release_credentials`)
)

// loadsInDocs loads a configuration in a folder in which the files that it names
// are there; what a page leaves out of a target is added.
func loadsInDocs(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	text = hidden.ReplaceAllString(text, "${1}${2}url: redis://127.0.0.1:6379/0\n${2}release_credentials")
	names := map[string][]string{"targets": {"orders"}}
	for _, m := range inList.FindAllStringSubmatch(text, -1) {
		names[m[1]] = append(names[m[1]], strings.Split(strings.ReplaceAll(m[2], " ", ""), ",")...)
	}
	if !regexp.MustCompile(`(?m)^targets:`).MatchString(text) {
		text += "\ntargets:\n"
		for i, name := range names["targets"] {
			text += fmt.Sprintf("  - {name: %s, url: \"redis://10.0.0.%d:6379/0\"}\n", name, i+1)
		}
	}
	if !regexp.MustCompile(`(?m)^classes:`).MatchString(text) && len(names["classes"]) > 0 {
		text += "\nclasses:\n"
		slices.Sort(names["classes"])
		for _, name := range slices.Compact(names["classes"]) {
			text += fmt.Sprintf("  - {class: %s, match: [\"%s:*\"]}\n", name, name)
		}
	}
	certs := docCertificates()
	text = fileKey.ReplaceAllStringFunc(text, func(found string) string {
		m := fileKey.FindStringSubmatch(found)
		content := "not-so-secret-not-so-secret-not-so-secret\n"
		switch m[1] {
		case "url_file":
			content = "https://hooks.example.org/x"
		case "secret_files":
			content = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		case "ca_file", "client_ca_file", "cert_file":
			content = certs.cert
		case "key_file":
			content = certs.key
		case "users_file", "audit_key_file":
			return found // Made by the program where they are missing.
		}
		name := strings.NewReplacer("/", "_", `"`, "", "'", "").Replace(m[3])
		name = filepath.Join(dir, m[1]+name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return m[1] + ": " + m[2] + name
	})
	file := filepath.Join(dir, "locksteward.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(file)
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return fmt.Errorf("%w\n%s", invalid, text)
	}
	return err
}

type docCertificate struct{ cert, key string }

// docCertificates makes a certificate that stands for all that pages name.
var docCertificates = sync.OnceValue(newDocCertificate)

func newDocCertificate() docCertificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "docs"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return docCertificate{
		cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		key:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}
}
