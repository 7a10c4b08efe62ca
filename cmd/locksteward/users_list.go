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
		where        usersFlags
		output       outputFlag
		agent        agentFlags
		full, signIn bool
	)
	c := &cobra.Command{
		Use: "list", Short: "Show the users, or who may request, approve and release in each class",
		Long: `List shows the users of the users file: their roles and teams, and how they sign in.
It shows no secrets, and needs no agent.

With --access it joins the users file with the classes of a configuration: who may
request and approve releases of each class, who may release without approval, and
which classes have no possible approver. It is for access reviews. It does not know
the people of an OIDC provider.

With --last-sign-in it also asks the agent for the last browser sign-in of each user;
requests with tokens are not sign-ins.`,
		Example: `  locksteward users list
  locksteward users list --access --config locksteward.yaml --last-sign-in`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if signIn && !full {
				return usagef("--last-sign-in needs --access")
			}
			at, err := where.find(p)
			if err != nil {
				return err
			}
			if full && !at.known {
				return usagef("the classes are not known: name the configuration with --config FILE")
			}
			set, err := users.Load(at.file)
			if err != nil {
				return err
			}
			if full {
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
				if output.data() {
					return output.encode(p.stdout, report)
				}
				return writeAccess(p.stdout, report)
			}
			if output.data() {
				return output.encode(p.stdout, struct {
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
	agent.register(c)
	c.Flags().BoolVar(&full, "access", false, "show who may request, approve and release in each class")
	c.Flags().BoolVar(&signIn, "last-sign-in", false, "with --access: ask the agent for the last sign-in of each user")
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
				orNobody(c.Requesters), orNobody(c.Approvers), dash(strings.Join(c.BreakGlass, " ")),
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

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, " ")
}
