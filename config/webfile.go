package config

import (
	"fmt"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/internal/credfile"
)

// webFile is the part of exporter-toolkit's web file that names certificates.
type webFile struct {
	TLS struct {
		Cert     string `yaml:"cert_file"`
		Key      string `yaml:"key_file"`
		ClientCA string `yaml:"client_ca_file"`
	} `yaml:"tls_server_config"`
}

// MetricsCredentials opens the certificates that metrics.web_config_file names, to
// tell when they end; nil if it names none. The listener reads them by itself, for
// each connection. Their keys are those of that file.
func (c Config) MetricsCredentials() (*credfile.Set, error) {
	if c.Metrics.WebConfigFile == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(c.Metrics.WebConfigFile)
	if err != nil {
		return nil, fmt.Errorf("metrics.web_config_file: %w", err)
	}
	var web webFile
	if err := yaml.Unmarshal(raw, &web); err != nil {
		return nil, fmt.Errorf("metrics.web_config_file: %w", err)
	}
	beside := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(c.Metrics.WebConfigFile), path)
	}
	set, err := credfile.Open(
		credfile.Files{CA: beside(web.TLS.ClientCA), Cert: beside(web.TLS.Cert), Key: beside(web.TLS.Key)},
		credfile.Keys{CA: "client_ca_file", Cert: "cert_file", Key: "key_file"})
	if err != nil {
		return nil, fmt.Errorf("metrics.web_config_file: %w", err)
	}
	return set, nil
}
