package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/access"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

func usersListCommand(p *program) *cobra.Command {
	var (
		where  usersFlags
		output outputFlag
	)
	c := &cobra.Command{
		Use: "list", Short: "Show the users", Long: `List shows the users of the users file: their roles and teams, and how they sign in.
It shows no secret, and asks no agent.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			at, err := where.find(p)
			if err != nil {
				return err
			}
			set, err := users.Load(at.file)
			if err != nil {
				return err
			}
			if output.json() {
				return writeJSON(p.stdout, struct {
					Users []access.User `json:"users"`
				}{access.Users(set)})
			}
			if set.Len() == 0 {
				_, err := fmt.Fprintf(p.stdout, "no users in %s; add one with 'locksteward users add'\n", at.file)
				return err
			}
			return writeUsers(p.stdout, access.Users(set))
		},
	}
	where.register(c)
	output.register(c)
	return c
}

func writeUsers(w io.Writer, all []access.User) error {
	var rows [][]string
	header := []string{"NAME", "ROLES", "TEAMS", "SIGNS IN WITH", "STATE"}
	asked := slices.ContainsFunc(all, func(u access.User) bool { return u.LastSignIn != nil })
	if asked {
		header = append(header, "LAST SIGN-IN")
	}
	for _, u := range all {
		var by []string
		switch {
		case u.Tokens == 1:
			by = append(by, "token")
		case u.Tokens > 1:
			by = append(by, strconv.Itoa(u.Tokens)+" tokens")
		}
		if u.Password != "" {
			by = append(by, "password ("+u.Password+")")
		}
		if u.External {
			by = append(by, "proxy or OIDC")
		}
		state := "enabled"
		if u.Disabled {
			state = "disabled"
		}
		row := []string{u.Name, strings.Join(u.Roles, " "), dash(strings.Join(u.Teams, " ")), strings.Join(by, ", "), state}
		if asked {
			last := "-"
			if u.LastSignIn != nil {
				last = u.LastSignIn.UTC().Format(time.DateTime)
			}
			row = append(row, last)
		}
		rows = append(rows, row)
	}
	return writeTable(w, header, rows)
}

func usersAccessCommand(p *program) *cobra.Command {
	var (
		where  usersFlags
		output outputFlag
		agent  agentFlags
		signIn bool
	)
	c := &cobra.Command{
		Use: "access-report", Short: "Show who may do what with the locks of which class",
		Long: `Access-report joins the users file with the classes of a configuration: who may ask
for a release of a class's locks, who may approve it, who may do without, and of
which classes nobody could ever approve one. It is for those who review access, and
shows no secret. People of an OIDC provider are not known to it.

With --last-sign-in it asks the agent when each user signed in last with a browser;
what programs do with tokens is no sign-in.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := where.find(p)
			if err != nil {
				return err
			}
			if !at.known {
				return usagef("which classes there are is not known: give the configuration as --config FILE")
			}
			set, err := users.Load(at.file)
			if err != nil {
				return err
			}
			report := access.New(append(at.classes, class.Class{Name: class.Default}), set)
			report.Warnings = append([]string{}, at.warnings(set)...)
			if at.elsewhere {
				report.Warnings = append(report.Warnings, "people may sign in at the provider of console.oidc too: the roles that console.oidc.roles gives them are not in this report")
			}
			if signIn {
				if err := lastSignIns(cmd.Context(), &agent, report.Users); err != nil {
					return err
				}
			}
			if output.json() {
				return writeJSON(p.stdout, report)
			}
			return writeAccess(p.stdout, report)
		},
	}
	where.register(c)
	output.register(c)
	agent.register(c)
	c.Flags().BoolVar(&signIn, "last-sign-in", false, "ask the agent when each user signed in last")
	return c
}

// lastSignIns asks the agent's audit trail.
func lastSignIns(ctx context.Context, agent *agentFlags, all []access.User) error {
	client, err := agent.client()
	if err != nil {
		return err
	}
	for i := range all {
		list, err := client.AuditEntries(ctx, apiclient.AuditQuery{Actor: all[i].Name, Action: signin.ActionOK, Limit: 1})
		if err != nil {
			return fmt.Errorf("read last sign-in of %s: %w", all[i].Name, err)
		}
		if len(list.Entries) > 0 {
			all[i].LastSignIn = &list.Entries[0].At
		}
	}
	return nil
}

func writeAccess(w io.Writer, report access.Report) error {
	var rows [][]string
	for _, c := range report.Classes {
		row := []string{oneLine(c.Class), c.Release, "-", "-", "-", "-", "-"}
		if c.Release != string(class.ReleaseOff) {
			row = []string{
				oneLine(c.Class), c.Release, strconv.Itoa(c.Approvals), c.SelfApproval,
				nobody(c.Requesters), nobody(c.Approvers), dash(strings.Join(c.BreakGlass, " ")),
			}
		}
		rows = append(rows, row)
	}
	if err := writeTable(w, []string{"CLASS", "RELEASE", "APPROVALS", "OWN REQUEST", "REQUESTERS", "APPROVERS", "BREAK-GLASS"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := writeUsers(w, report.Users); err != nil {
		return err
	}
	for _, warning := range report.Warnings {
		if _, err := fmt.Fprintf(w, "\nwarning: %s\n", warning); err != nil {
			return err
		}
	}
	return nil
}

func nobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, " ")
}
