package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/users"
)

// defaultUsersFile is where `users add` writes when neither --users-file nor a
// configuration says otherwise.
const defaultUsersFile = "users.yaml"

func usersCommand(p *program) *cobra.Command {
	var (
		file  string
		roles []string
	)
	names := make([]string, 0, len(users.Roles()))
	for _, r := range users.Roles() {
		names = append(names, string(r))
	}
	add := &cobra.Command{
		Use:   "add NAME --role ROLE",
		Short: "Add a person or program with an API token",
		Long: `Add writes a user to the users file and prints their API token on stdout. The
file keeps a hash: the token cannot be shown again. A running agent reads the
file again on 'POST /-/reload' or SIGHUP.

Roles: viewer reads; requester also asks for releases; approver also approves or
denies them; admin also reloads. Who does two of these gets two roles.`,
		Example: `  locksteward users add ana --role requester
  locksteward users add bo --role approver --role requester --users-file /etc/locksteward/users.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			parsed := make([]users.Role, 0, len(roles))
			for _, text := range roles {
				role, err := users.ParseRole(text)
				if err != nil {
					return usagef("--role: %w", err)
				}
				parsed = append(parsed, role)
			}
			token, err := users.Add(file, args[0], parsed)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.stderr, "locksteward: added %s (%s) to %s; the token below is shown this once\n",
				args[0], strings.Join(roles, ", "), file)
			set, err := users.Load(file)
			if err != nil {
				return err
			}
			for _, warning := range set.Warnings() {
				fmt.Fprintln(p.stderr, "locksteward: warning:", warning)
			}
			_, err = fmt.Fprintln(p.stdout, token.Reveal())
			return err
		},
	}
	add.Flags().StringVar(&file, "users-file", defaultUsersFile, "the file that console.users_file names")
	add.Flags().StringArrayVar(&roles, "role", nil, strings.Join(names, ", ")+" (may be repeated)")
	_ = add.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return group("users", "People and programs that may use the console and API", add)
}
