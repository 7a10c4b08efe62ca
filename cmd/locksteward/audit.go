package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

func auditCommand(p *program) *cobra.Command {
	c := group("audit", "List, verify, export and sign the audit trail",
		auditListCommand(p), auditVerifyCommand(p), auditExportCommand(p), auditImportCommand(p), auditCheckpointCommand(p))
	c.Long = `The audit trail holds what people and the agent did. 'locksteward status' shows its
state. Checkpoints of it are signed with an Ed25519 key (PEM, PKCS #8, mode 0600), which
store.audit_key_file names, or which the agent makes beside an SQLite file:

  umask 077
  openssl genpkey -algorithm ed25519 -out audit.pem
  openssl pkey -in audit.pem -pubout > audit.pub

Whoever verifies needs the public key. Keep it where the agent's machine cannot write.`
	return c
}

// storeFlags say which store to read itself; without them an agent is asked.
type storeFlags struct{ config, dsn string }

func (f *storeFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.config, "config", "", "read the store of this configuration; its agent may be running")
	c.Flags().StringVar(&f.dsn, "store", "", "read this store, in the format of store.dsn")
	_ = c.RegisterFlagCompletionFunc("config", yamlFiles)
	c.MarkFlagsMutuallyExclusive("config", "store")
}

func (f *storeFlags) given() bool { return f.config != "" || f.dsn != "" }

// open opens the store to look at it; keys are those that a checkpoint may be
// signed with, as far as they can be read.
func (f *storeFlags) open(ctx context.Context) (*store.Store, audit.Keyring, error) {
	cfg := store.Config{DSN: f.dsn}
	if u, err := url.Parse(f.dsn); err == nil && u.User != nil {
		if _, set := u.User.Password(); set {
			return nil, nil, usagef("--store: contains a password, which every process on this machine can read; use --config or PGPASSFILE")
		}
	}
	if f.config != "" {
		c, err := loadConfig(f.config)
		if err != nil {
			return nil, nil, err
		}
		cfg = c.Store
	}
	st, err := store.OpenReader(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	keys := audit.Keyring{}
	if file := audit.KeyFile(cfg); file != "" {
		if k, err := audit.ReadKey(file); err == nil {
			keys = audit.NewKeyring(k.Public())
		}
	}
	return st, keys, nil
}

// agentTrail is the trail of an agent, read through its API.
type agentTrail struct{ client *apiclient.Client }

// auditPage is how many entries are asked for at once.
const auditPage = 2000

// Ends returns the ends of the trail.
func (a agentTrail) Ends(ctx context.Context) (base, head store.Checkpoint, err error) {
	s, err := a.client.AuditStatus(ctx)
	return store.Checkpoint{Seq: s.Base.Seq, Hash: s.Base.Hash}, store.Checkpoint{Seq: s.Head.Seq, Hash: s.Head.Hash}, err
}

// EachEntry calls fn for the entries from seq from on.
func (a agentTrail) EachEntry(ctx context.Context, from int64, fn func(locksteward.Entry) error) error {
	for after := from - 1; ; {
		list, err := a.client.AuditEntries(ctx, apiclient.AuditQuery{Ascending: true, After: after, Limit: auditPage})
		if err != nil {
			return err
		}
		for _, e := range list.Entries {
			entry, err := e.Entry()
			if err != nil {
				return err
			}
			if err := fn(entry); err != nil {
				return err
			}
			after = e.Seq
		}
		if list.Next == 0 {
			return nil
		}
	}
}

// AllCheckpoints returns all checkpoints in their order.
func (a agentTrail) AllCheckpoints(ctx context.Context) ([]store.SignedCheckpoint, error) {
	var out []store.SignedCheckpoint
	for before := int64(0); ; {
		list, err := a.client.AuditCheckpoints(ctx, before, auditPage)
		if err != nil {
			return nil, err
		}
		for _, c := range list.Checkpoints {
			parsed, err := audit.ParseLine(c.Line)
			if err != nil {
				return nil, err
			}
			out = append(out, parsed)
			before = c.Seq
		}
		if len(list.Checkpoints) < auditPage {
			slices.Reverse(out)
			return out, nil
		}
	}
}

// PlaceAt returns the first entry made at or after a time.
func (a agentTrail) PlaceAt(ctx context.Context, at time.Time) (int64, error) {
	list, err := a.client.AuditEntries(ctx, apiclient.AuditQuery{Ascending: true, Since: apiclient.AuditTime(at), Limit: 1})
	if err != nil || len(list.Entries) == 0 {
		return 0, err
	}
	return list.Entries[0].Seq, nil
}

var _ audit.Source = agentTrail{}

// progress tells how far a long reading is, now and then.
func (p *program) progress() func(done, all int64) {
	last := time.Now()
	return func(done, all int64) {
		if now := time.Now(); now.Sub(last) >= 2*time.Second {
			last = now
			of := ""
			if all > 0 {
				of = fmt.Sprintf(" of %d", all)
			}
			fmt.Fprintf(p.stderr, "locksteward: %d%s entries\n", done, of)
		}
	}
}

// parseMoment reads a time as people write it: RFC 3339, or how long ago.
func parseMoment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, usagef("--%s: got %q, write how long ago, such as 24h, or a time such as 2026-03-01T12:00:00Z", flag, text)
	}
	return t, nil
}
