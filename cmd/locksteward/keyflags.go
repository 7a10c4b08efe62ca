package main

import (
	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
)

// keyFlags name one lock: its key as the argument, exact bytes with --base64.
type keyFlags struct {
	target string
	db     int
	base64 bool
}

func (f *keyFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.target, "target", "", "the lock's target (required if the agent watches several)")
	c.Flags().IntVar(&f.db, "db", -1, "the lock's database (default: the target's)")
	c.Flags().BoolVar(&f.base64, "base64", false, "KEY is base64, for a key that is not valid UTF-8 (key_b64 in JSON)")
}

func (f *keyFlags) key(arg string) (string, error) {
	if !f.base64 {
		return arg, nil
	}
	key, err := locksteward.DecodeKey("", arg)
	if err != nil {
		return "", usagef("KEY: %w; --base64 wants standard base64, as key_b64 in JSON has it", err)
	}
	return key, nil
}
