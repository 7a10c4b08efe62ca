package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/users"
)

// usersSwitchCommand is `users disable` or `users enable`.
func usersSwitchCommand(p *program, disable bool) *cobra.Command {
	var where usersFlags
	verb, long := "enable", `Enable lets a disabled user sign in again, with the same tokens and password.`
	if disable {
		verb, long = "disable", `Disable keeps the user in the file but refuses their tokens and password. It takes
effect on the agent's next reload, which also ends their sessions.`
	}
	c := &cobra.Command{
		Use: verb + " NAME", Short: map[bool]string{true: "Lock a user out", false: "Let a user in again"}[disable], Long: long,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := where.find(p)
			if err != nil {
				return err
			}
			changed, err := users.SetDisabled(at.file, args[0], disable)
			if err != nil {
				return err
			}
			if !changed {
				_, err = fmt.Fprintf(p.stdout, "%s was %sd already\n", args[0], verb)
				return err
			}
			if _, err := fmt.Fprintf(p.stdout, "%s is %sd; %s\n", args[0], verb, reloadHint); err != nil {
				return err
			}
			return at.warn(p)
		},
	}
	where.register(c)
	return c
}

func usersPasswdCommand(p *program) *cobra.Command {
	var (
		where usersFlags
		file  string
	)
	c := &cobra.Command{
		Use:   "passwd NAME",
		Short: "Set a user's password for the console",
		Long: `Passwd asks twice for a password and replaces the argon2id hash in the users file. It
is for signing in to the console; the API only accepts tokens, which stay valid.
Sessions that began with the old password end on the agent's next reload.`,
		Example: `  locksteward users passwd ana
  locksteward users passwd ana --password-file /run/secrets/ana`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := where.find(p)
			if err != nil {
				return err
			}
			var password locksteward.Secret
			if file == "" {
				password, err = askTwice(p, args[0])
			} else if password, err = config.ReadSecret(file); err != nil {
				err = usagef("--password-file: %w", err)
			}
			if err != nil {
				return err
			}
			if err := users.SetPassword(at.file, args[0], password); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "%s has a new password; %s\n", args[0], reloadHint)
			return err
		},
	}
	where.register(c)
	c.Flags().StringVar(&file, "password-file", "", "file with the password on its first line")
	return c
}

// askTwice reads a password from the terminal, without showing it.
func askTwice(p *program, name string) (locksteward.Secret, error) {
	if !isTerminal(os.Stdin) {
		return "", usagef("a password needs a terminal to type it; or use --password-file FILE")
	}
	var typed [2]string
	for i, prompt := range []string{"New password of " + name + ": ", "Once more: "} {
		fmt.Fprint(p.stderr, prompt)
		raw, err := term.ReadPassword(int(os.Stdin.Fd()))
		fmt.Fprintln(p.stderr)
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		typed[i] = string(raw)
	}
	if typed[0] != typed[1] {
		return "", errors.New("the two passwords differ; nothing was changed")
	}
	return locksteward.Secret(typed[0]), nil
}
