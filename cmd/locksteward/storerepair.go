package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/store"
)

// repairedStore is the output of store repair as JSON.
type repairedStore struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Entries int64  `json:"entries"`
}

func storeRepair(p *program) *cobra.Command {
	var flags dsnFlags
	var output outputFlag
	c := &cobra.Command{
		Use:   "repair",
		Short: "Replace the store by a confirmed copy after a failed fsync",
		Long: `Repair copies the SQLite store, checks the copy and its audit trail, flushes it to
the disk and renames it to the name of the store. The agent then starts again.

After a failed fsync the content of the file on the disk is not known, so the
agent writes nothing more to it, and refuses it at later starts. Stop the agent and
check the disk first, and run the command as the user of the agent. It needs as
much free space as the store takes. It can be run again after it failed or was
killed: nothing is lost. docs/store.md explains the rest.`,
		Example: `  locksteward store repair
  locksteward store repair --store sqlite:/var/lib/locksteward/locksteward.db --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, err := flags.resolve()
			if err != nil {
				return err
			}
			r, err := store.Repair(cmd.Context(), dsn)
			if err != nil {
				return err
			}
			if output.data() {
				return output.encode(p.stdout, repairedStore(r))
			}
			_, err = fmt.Fprintf(p.stdout, "%s: %d bytes, %d audit entries, repaired and checked\n", r.Path, r.Bytes, r.Entries)
			return err
		},
	}
	flags.register(c, "repair")
	output.register(c)
	return c
}
