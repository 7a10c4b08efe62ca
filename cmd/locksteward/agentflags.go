package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/credfile"
)

// The environment's way to say which agent to talk to, and as whom.
const (
	agentEnv = "LOCKSTEWARD_AGENT"
	tokenEnv = "LOCKSTEWARD_TOKEN"
	caEnv    = "LOCKSTEWARD_CA_FILE"
	certEnv  = "LOCKSTEWARD_CERT_FILE"
	keyEnv   = "LOCKSTEWARD_KEY_FILE"
)

const defaultAgent = "http://127.0.0.1:10122"

// agentFlags say which agent a command talks to.
type agentFlags struct {
	url       string
	tokenFile string
	ca        string
	cert      string
	key       string
}

func (f *agentFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "agent", "", "the agent's console (default "+defaultAgent+", or "+agentEnv+")")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with your API token (or set "+tokenEnv+")")
	c.Flags().StringVar(&f.ca, "ca-file", "", "PEM file of the CA that signed the agent's certificate (or set "+caEnv+")")
	c.Flags().StringVar(&f.cert, "cert-file", "", "PEM file of your client certificate, if the agent asks for one (or set "+certEnv+")")
	c.Flags().StringVar(&f.key, "key-file", "", "PEM file of its key (or set "+keyEnv+")")
}

func (f *agentFlags) client() (*apiclient.Client, error) {
	token := locksteward.Secret(os.Getenv(tokenEnv))
	if f.tokenFile != "" {
		var err error
		if token, err = config.ReadSecret(f.tokenFile); err != nil {
			return nil, usagef("--token-file: %w", err)
		}
		if token == "" {
			return nil, usagef("--token-file: the first line of %q is empty, write your API token there: 'locksteward users add' prints it once", f.tokenFile)
		}
	}
	files := credfile.Files{
		CA: cmp.Or(f.ca, os.Getenv(caEnv)), Cert: cmp.Or(f.cert, os.Getenv(certEnv)), Key: cmp.Or(f.key, os.Getenv(keyEnv)),
	}
	set, err := credfile.Open(files, credfile.Keys{CA: "--ca-file", Cert: "--cert-file", Key: "--key-file"})
	if err != nil {
		return nil, usagef("%w", err)
	}
	c, err := apiclient.New(cmp.Or(f.url, os.Getenv(agentEnv), defaultAgent), token, apiclient.NewHTTPClient(set.Client("", 0)))
	if err != nil {
		return nil, usagef("--agent: %w", err)
	}
	return c, nil
}
