package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/store"
)

func storeCommand(p *program) *cobra.Command {
	var dsn, configFile string
	backup := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store to a new file while the agent runs",
		Long: `Backup writes a consistent copy of the SQLite store to a new file with mode 0600, and
verifies the copy and its audit trail. The agent may keep running. To restore it, stop
the agent and replace the file with the copy; docs/store.md has the steps, and those
for PostgreSQL.

The copy contains the installation's key for token digests: protect it like the store.`,
		Example: `  locksteward store backup /var/backups/locksteward-$(date +%F).db
  locksteward store backup --dsn sqlite:/var/lib/locksteward/locksteward.db backup.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from := dsn
			if from == "" {
				cfg, err := loadConfig(configFile)
				if err != nil {
					return err
				}
				from = cfg.Store.DSN
			}
			entries, err := store.Backup(cmd.Context(), from, args[0])
			if err != nil {
				return err
			}
			info, err := os.Stat(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "%s: %d bytes, %d audit entries, checked\n", args[0], info.Size(), entries)
			return err
		},
	}
	backup.Flags().StringVar(&dsn, "dsn", "", "store to copy, as store.dsn of the configuration")
	backup.Flags().StringVar(&configFile, "config", defaultConfigFile, "configuration that names the store, unless --dsn does")
	return group("store", "Copy the agent's store", backup)
}
