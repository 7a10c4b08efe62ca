package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/plural"
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
	return group("store", "Copy the agent's store, or replace it by a copy", storeBackup(p))
}

// storeCopy is what `store backup` made.
type storeCopy struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Entries int64  `json:"entries"` // of the audit trail, verified
}

func storeBackup(p *program) *cobra.Command {
	var (
		flags   dsnFlags
		output  outputFlag
		inPlace bool
	)
	c := &cobra.Command{
		Use:   "backup {FILE | --in-place}",
		Short: "Copy the store to a new file while the agent runs, or replace it by a confirmed copy",
		Long: `Backup writes a consistent copy of the SQLite store to a new file with mode 0600, and
verifies the copy and its audit trail. The agent may keep running. To restore it, stop
the agent and replace the file with the copy; docs/store.md has the steps, and those
for PostgreSQL.

The copy contains the installation's key for token digests: protect it like the store.

With --in-place it repairs the store after a failed fsync: it copies the SQLite store,
checks the copy and its audit trail, flushes it to the disk and renames it to the name
of the store. The agent then starts again.

After a failed fsync the content of the file on the disk is not known, so the
agent writes nothing more to it, and refuses it at later starts. Stop the agent and
check the disk first, and run the command as the user of the agent. It needs as
much free space as the store takes. It can be run again after it failed or was
killed: nothing is lost. docs/store.md explains the rest.`,
		Example: `  locksteward store backup /var/backups/locksteward-$(date +%F).db
  locksteward store backup --store sqlite:/var/lib/locksteward/locksteward.db backup.db
  locksteward store backup --in-place --store sqlite:/var/lib/locksteward/locksteward.db`,
		Args: func(_ *cobra.Command, args []string) error {
			if inPlace != (len(args) == 0) || len(args) > 1 {
				return errors.New("write FILE for a copy, or --in-place without a FILE to replace the store by one")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dsn, err := flags.resolve()
			if err != nil {
				return err
			}
			var made storeCopy
			did := "checked"
			if inPlace {
				did = "repaired and checked"
				var r store.Repaired
				r, err = store.Repair(cmd.Context(), dsn)
				made = storeCopy(r)
			} else {
				made, err = copyStore(cmd.Context(), dsn, args[0])
			}
			if err != nil {
				return err
			}
			if output.data() {
				return output.encode(p.stdout, made)
			}
			_, err = fmt.Fprintf(p.stdout, "%s: %d bytes, %s, %s\n", made.Path, made.Bytes, plural.Count(made.Entries, "audit entry"), did)
			return err
		},
	}
	flags.register(c, "copy")
	output.register(c)
	c.Flags().BoolVar(&inPlace, "in-place", false, "replace the store by the copy, after a failed fsync; the agent must not run")
	return c
}

func copyStore(ctx context.Context, dsn, file string) (storeCopy, error) {
	entries, err := store.Backup(ctx, dsn, file)
	if err != nil {
		return storeCopy{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return storeCopy{}, err
	}
	return storeCopy{file, info.Size(), entries}, nil
}
