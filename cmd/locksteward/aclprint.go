package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/source/redis/acl"
)

// aclFormat is --output of acl.
type aclFormat struct{ value string }

var aclFormats = []string{"commands", "aclfile", "json"}

func (o *aclFormat) register(c *cobra.Command) {
	o.value = aclFormats[0]
	c.Flags().VarP(o, "output", "o", "commands (for redis-cli), aclfile (lines of an ACL file or redis.conf) or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(aclFormats, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (o *aclFormat) String() string { return o.value }

// Type names the flag's type in help.
func (o *aclFormat) Type() string { return "format" }

// Set accepts the formats.
func (o *aclFormat) Set(value string) error {
	if slices.Contains(aclFormats, value) {
		o.value = value
		return nil
	}
	return fmt.Errorf("got %q, write commands, aclfile or json", value)
}

// aclDocument is --output json, a contract (docs/acl.md).
type aclDocument struct {
	Targets []aclTarget `json:"targets"`
}

type aclTarget struct {
	// Target is the configured name, "" without a configuration.
	Target string `json:"target"`
	Server string `json:"server"`
	// Statements grant the rights on a store other than Redis; "" of Redis.
	Statements string    `json:"statements,omitempty"`
	Users      []aclUser `json:"users"`
	Notes      []string  `json:"notes"`
}

type aclUser struct {
	Name string `json:"name"`
	For  string `json:"for"`
	// PasswordKnown says that password is the hash of one, not a placeholder.
	PasswordKnown bool         `json:"password_known"`
	Commands      []aclGranted `json:"commands"`
	Keys          []string     `json:"keys"`
	Channels      []string     `json:"channels"`
	SetUser       string       `json:"setuser"`
	ACLFile       string       `json:"aclfile"`
	Notes         []string     `json:"notes"`
}

type aclGranted struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

func (o *aclFormat) write(p *program, sets []aclSet) error {
	if o.value == "json" {
		return writeJSON(p.stdout, aclDocumentOf(sets))
	}
	if o.value == "aclfile" && len(sets) > 1 {
		return usagef("--output aclfile: an ACL file is of one server, and %d targets are configured; name one with --target", len(sets))
	}
	for i, set := range sets {
		if len(sets) > 1 {
			if i > 0 {
				fmt.Fprintln(p.stdout)
			}
			fmt.Fprintf(p.stdout, "# target %s\n", set.Target)
		}
		for _, note := range set.Notes {
			fmt.Fprintf(p.stderr, "locksteward: %s\n", note)
		}
		if set.Statements != "" {
			if _, err := fmt.Fprint(p.stdout, set.Statements); err != nil {
				return err
			}
		}
		for _, u := range set.Users {
			for _, note := range u.Notes {
				fmt.Fprintf(p.stderr, "locksteward: %s: %s\n", u.Name, note)
			}
			if u.PasswordHash == "" {
				fmt.Fprintf(p.stderr, "locksteward: %s: replace %s, or name a file with the password: no server accepts the placeholder\n", u.Name, u.Placeholder())
			}
			line := u.SetUser()
			if o.value == "aclfile" {
				line = u.FileLine()
			}
			if _, err := fmt.Fprintln(p.stdout, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func aclDocumentOf(sets []aclSet) aclDocument {
	doc := aclDocument{Targets: []aclTarget{}}
	for _, set := range sets {
		t := aclTarget{Target: set.Target, Statements: set.Statements, Users: []aclUser{}, Notes: append([]string{}, set.Notes...)}
		if set.Statements == "" {
			t.Server = set.Version.String()
		}
		for _, u := range set.Users {
			out := aclUser{
				Name: u.Name, For: u.For, PasswordKnown: u.PasswordHash != "", Keys: append([]string{}, u.Keys...), Channels: append([]string{}, u.Channels...),
				SetUser: u.SetUser(), ACLFile: u.FileLine(), Notes: append([]string{}, u.Notes...),
			}
			for _, rule := range u.Commands {
				out.Commands = append(out.Commands, aclGranted{Rule: rule, Why: acl.Why(rule[1:])})
			}
			t.Users = append(t.Users, out)
		}
		doc.Targets = append(doc.Targets, t)
	}
	return doc
}
