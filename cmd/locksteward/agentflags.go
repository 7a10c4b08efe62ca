package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// The environment's way to say which agent to talk to, and as whom.
const (
	agentEnv = "LOCKSTEWARD_AGENT"
	tokenEnv = "LOCKSTEWARD_TOKEN"
)

const defaultAgent = "http://127.0.0.1:10122"

// agentFlags say which agent a command talks to.
type agentFlags struct {
	url       string
	tokenFile string
}

func (f *agentFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "agent", "", "the agent's console (default "+defaultAgent+", or "+agentEnv+")")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with your API token (or set "+tokenEnv+")")
}

func (f *agentFlags) client() (*apiclient.Client, error) {
	token := locksteward.Secret(os.Getenv(tokenEnv))
	if f.tokenFile != "" {
		var err error
		if token, err = config.ReadSecret(f.tokenFile); err != nil {
			return nil, usagef("--token-file: %w", err)
		}
	}
	c, err := apiclient.New(cmp.Or(f.url, os.Getenv(agentEnv), defaultAgent), token, nil)
	if err != nil {
		return nil, usagef("--agent: %w", err)
	}
	return c, nil
}
