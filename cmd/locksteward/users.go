package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/access"
	"github.com/locksteward/locksteward/internal/users"
)

// defaultUsersFile is where `users add` writes when neither --users-file nor a
// configuration says otherwise.
const defaultUsersFile = "users.yaml"

func usersCommand(p *program) *cobra.Command {
	return group("users", "People and programs that may use the console and API",
		usersAddCommand(p), usersListCommand(p), usersChangeCommand(p))
}

// usersFlags say which users file is meant.
type usersFlags struct {
	file, config string
}

func (f *usersFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "users-file", "", "the file that console.users_file names (default: what the configuration says, or "+defaultUsersFile+")")
	c.Flags().StringVar(&f.config, "config", "", "configuration file (default "+defaultConfigFile+", if it is there)")
	_ = c.RegisterFlagCompletionFunc("config", yamlFiles)
	_ = c.RegisterFlagCompletionFunc("users-file", yamlFiles)
}

// usersFileLocation is where the users are, and the classes that they decide on, as far as
// that is known.
type usersFileLocation struct {
	file    string
	classes []class.Class
	// known says that the configuration was read, elsewhere that people may come
	// from an OIDC provider too.
	known, elsewhere bool
}

// find reads the configuration where there is one. One that was not asked for and
// cannot be used is left alone: it may be invalid for want of users.
func (f *usersFlags) find(p *program) (usersFileLocation, error) {
	out := usersFileLocation{file: f.file}
	name := f.config
	if name == "" {
		name = defaultConfigFile
	}
	cfg, err := config.Load(name)
	switch {
	case err == nil:
		out.classes, out.known, out.elsewhere = cfg.Classes, true, cfg.Console.SignIn.OIDC != nil
		if out.file == "" {
			out.file = cfg.Console.UsersFile
		}
	case f.config != "" && f.file == "":
		return out, usagef("%w\nname the file with --users-file if the configuration is not complete yet", err)
	case f.file == "":
		out.file = defaultUsersFile
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(p.stderr, "locksteward: warning: %s cannot be read, so the users file is %s: see 'locksteward config check'\n", name, out.file)
		}
	}
	return out, nil
}

// warn says what cannot work with the users as they are now.
func (l usersFileLocation) warn(p *program) error {
	set, err := users.Load(l.file)
	if err != nil {
		return err
	}
	for _, warning := range l.warnings(set) {
		fmt.Fprintln(p.stderr, "locksteward: warning:", warning)
	}
	return nil
}

func (l usersFileLocation) warnings(set *users.Set) []string {
	switch {
	case l.elsewhere:
		return nil // who comes from a provider is not known here
	case l.known:
		return append(set.Warnings(), access.Undecidable(l.classes, set)...)
	default:
		return set.Warnings()
	}
}

// reloadHint ends what a change says: a running agent does not know of it yet.
const reloadHint = "it takes effect on reload ('POST /-/reload' or SIGHUP)"

func usersAddCommand(p *program) *cobra.Command {
	var (
		where usersFlags
		u     users.NewUser
		roles []string
	)
	names := make([]string, 0, len(users.Roles()))
	for _, r := range users.Roles() {
		names = append(names, string(r))
	}
	c := &cobra.Command{
		Use:   "add NAME --role ROLE",
		Short: "Add a person or program with an API token",
		Long: `Add writes a user to the users file and prints their API token on stdout. The
file keeps a hash: the token cannot be shown again. A running agent reads the
file again on 'POST /-/reload' or SIGHUP.

Roles: viewer reads; requester also requests releases; approver also approves or
denies them; admin also reloads, and pauses targets and releases; break-glass also
releases without an approval, which notifies all receivers. A user can have several
roles. classes[].approvers can name teams.

A user with --external signs in through the proxy or the OIDC provider of the
console, and gets no token.`,
		Example: `  umask 077; locksteward users add ana --role requester > ana.token
  locksteward users add bo --role approver --team checkout --users-file /etc/locksteward/users.yaml
  locksteward users add cy@example.org --role viewer --external`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			u.Name, u.Roles = args[0], nil
			for _, text := range roles {
				role, err := users.ParseRole(text)
				if err != nil {
					return usagef("--role: %w", err)
				}
				u.Roles = append(u.Roles, role)
			}
			at, err := where.find(p)
			if err != nil {
				return err
			}
			token, err := users.AddUser(at.file, u)
			if err != nil {
				return err
			}
			note := "; the token below is not shown again"
			if u.External {
				note = "; they sign in through the console's proxy or provider"
			}
			fmt.Fprintf(p.stderr, "locksteward: added %s (%s) to %s%s\n", u.Name, strings.Join(roles, ", "), at.file, note)
			if err := at.warn(p); err != nil || u.External {
				return err
			}
			warnOfReaders(p.stdout, p.stderr)
			_, err = fmt.Fprintln(p.stdout, token.Reveal())
			return err
		},
	}
	where.register(c)
	c.Flags().StringArrayVar(&roles, "role", nil, strings.Join(names, ", ")+" (may be repeated)")
	c.Flags().StringArrayVar(&u.Teams, "team", nil, "team of the user (may be repeated)")
	c.Flags().BoolVar(&u.External, "external", false, "the user signs in through the console's proxy or OIDC provider, and gets no token")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// warnOfReaders says so if the token is about to be written into a file that other
// accounts can read.
func warnOfReaders(stdout, stderr io.Writer) {
	f, ok := stdout.(*os.File)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o044 != 0 && os.PathSeparator == '/' {
		fmt.Fprintf(stderr, "locksteward: warning: the token is written to a file that other accounts can read (mode %04o): run `chmod 600` on it, or `umask 077` before\n", info.Mode().Perm())
	}
}
