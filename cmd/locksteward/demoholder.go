package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/demo"
)

// demoHolderCommand is the process that the demo kills: it takes a lock that its
// stdin names and holds it.
func demoHolderCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    demoHolderUse,
		Short:  "Hold a lock for the demo",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Hold(cmd.Context(), os.Stdin, p.stdout)
		},
	}
}
