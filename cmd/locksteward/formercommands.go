package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/suggest"
)

// formerCommands are commands that are gone, and what to write instead.
var formerCommands = map[string]string{
	"version":             "locksteward --version",
	"users passwd":        "locksteward users change NAME --password",
	"users enable":        "locksteward users change NAME --enable",
	"users disable":       "locksteward users change NAME --disable",
	"users access-report": "locksteward users list --access",
	"release break-glass": "locksteward release request KEY --break-glass",
	"release lift":        "locksteward release undo ID --lift",
	"findings accept":     "locksteward silences add FINGERPRINT",
	"rules show":          "locksteward rules list RULE",
	"config example":      "locksteward config show --example",
	"audit status":        "locksteward status",
	"audit keygen":        audit.MakeKey,
	"store repair":        "locksteward store backup --in-place",
}

// noSubcommand checks the arguments of a command that only has subcommands: an argument that is left names none of them.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := masked(fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()))
	_, path, _ := strings.Cut(cmd.CommandPath()+" "+args[0], " ")
	if now, ok := formerCommands[path]; ok {
		return usagef("%w; write '%s'", err, now)
	}
	var names []string
	for _, child := range cmd.Commands() {
		names = append(names, child.Name())
	}
	if near := suggest.Nearest(args[0], names, nil); near != "" {
		return usagef("%w; did you mean %q?", err, near)
	}
	return usagef("%w; see '%s --help'", err, cmd.CommandPath())
}
