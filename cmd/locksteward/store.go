package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/store"
)

// dsnFlags name the store that a command works on.
type dsnFlags struct{ dsn, configFile string }

func (f *dsnFlags) register(c *cobra.Command, purpose string) {
	c.Flags().StringVar(&f.dsn, "store", "", "store to "+purpose+", as store.dsn of the configuration")
	c.Flags().StringVar(&f.configFile, "config", defaultConfigFile, "configuration that names the store, unless --store does")
}

// resolve returns the DSN of the store.
func (f *dsnFlags) resolve() (string, error) {
	if f.dsn != "" {
		return f.dsn, nil
	}
	cfg, err := loadConfig(f.configFile)
	if err != nil {
		return "", err
	}
	return cfg.Store.DSN, nil
}

func storeCommand(p *program) *cobra.Command {
	return group("store", "Copy and repair the agent's store", storeBackup(p), storeRepair(p))
}

func storeBackup(p *program) *cobra.Command {
	var flags dsnFlags
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store to a new file while the agent runs",
		Long: `Backup writes a consistent copy of the SQLite store to a new file with mode 0600, and
verifies the copy and its audit trail. The agent may keep running. To restore it, stop
the agent and replace the file with the copy; docs/store.md has the steps, and those
for PostgreSQL.

The copy contains the installation's key for token digests: protect it like the store.`,
		Example: `  locksteward store backup /var/backups/locksteward-$(date +%F).db
  locksteward store backup --store sqlite:/var/lib/locksteward/locksteward.db backup.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dsn, err := flags.resolve()
			if err != nil {
				return err
			}
			entries, err := store.Backup(cmd.Context(), dsn, args[0])
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
	flags.register(c, "copy")
	return c
}
