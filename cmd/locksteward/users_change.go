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

// usersChange is what `users change` is to change; one of it.
type usersChange struct {
	where                     usersFlags
	password, enable, disable bool
	passwordFile              string
}

func usersChangeCommand(p *program) *cobra.Command {
	var f usersChange
	c := &cobra.Command{
		Use:   "change NAME {--password | --password-file FILE | --enable | --disable}",
		Short: "Set a user's password for the console, or lock a user out and in again",
		Long: `With --password it asks twice for a password and replaces the argon2id hash in the
users file. The password is for signing in to the console; the API only accepts
tokens, which stay valid. Sessions that began with the old password end on the
agent's next reload.

With --disable the user stays in the file, and their tokens and password are refused.
It takes effect on the agent's next reload, which also ends their sessions. With
--enable they sign in again, with the same tokens and password.`,
		Example: `  locksteward users change ana --password
  locksteward users change ana --password-file /run/secrets/ana
  locksteward users change ana --disable`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			given := 0
			for _, one := range []bool{f.password, f.passwordFile != "", f.enable, f.disable} {
				if one {
					given++
				}
			}
			if given != 1 {
				return usagef("give one of --password, --password-file, --enable and --disable")
			}
			at, err := f.where.find(p)
			if err != nil {
				return err
			}
			if f.enable || f.disable {
				return f.setDisabled(p, at, args[0])
			}
			return f.setPassword(p, at, args[0])
		},
	}
	f.where.register(c)
	c.Flags().BoolVar(&f.password, "password", false, "set a password, which is asked for twice at the terminal")
	c.Flags().StringVar(&f.passwordFile, "password-file", "", "set the password on the first line of this file")
	c.Flags().BoolVar(&f.enable, "enable", false, "let a disabled user sign in again")
	c.Flags().BoolVar(&f.disable, "disable", false, "refuse the user's tokens and password")
	return c
}

func (f *usersChange) setDisabled(p *program, at usersFileLocation, name string) error {
	state := "enabled"
	if f.disable {
		state = "disabled"
	}
	changed, err := users.SetDisabled(at.file, name, f.disable)
	if err != nil {
		return err
	}
	if !changed {
		_, err = fmt.Fprintf(p.stdout, "%s was %s already\n", name, state)
		return err
	}
	if _, err := fmt.Fprintf(p.stdout, "%s is %s; %s\n", name, state, reloadHint); err != nil {
		return err
	}
	return at.warn(p)
}

func (f *usersChange) setPassword(p *program, at usersFileLocation, name string) error {
	var (
		password locksteward.Secret
		err      error
	)
	if f.password {
		password, err = askTwice(p, name)
	} else if password, err = config.ReadSecret(f.passwordFile); err != nil {
		err = usagef("--password-file: %w", err)
	}
	if err != nil {
		return err
	}
	if err := users.SetPassword(at.file, name, password); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s has a new password; %s\n", name, reloadHint)
	return err
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
