package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/store"
)

// auditVerdict is the object of `audit verify --output json`.
type auditVerdict struct {
	api.AuditVerified
	// Anchors is how many places were given, Anchored how many of them lie within what
	// was verified, AnchorsSigned how many had a good signature by a key that was given.
	Anchors       int `json:"anchors"`
	Anchored      int `json:"anchored"`
	AnchorsSigned int `json:"anchors_signed"`
	// KeysGiven says that signatures could be checked.
	KeysGiven bool `json:"keys_given"`
}

func auditVerifyCommand(p *program) *cobra.Command {
	var (
		agent           agentFlags
		from            storeFlags
		output          outputFlag
		export          string
		anchors, public []string
	)
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that nothing in the trail was changed, dropped or cut off",
		Long: `Verify reads the whole trail and checks its chain, its checkpoints and their
signatures. A broken trail ends with exit code 1 and names the entry.

Without --config, --store or --export the agent verifies its own trail. To verify it
without trusting the agent's machine, use --anchor: every entry is then read and
checked here, against checkpoints that were stored elsewhere, and with --public-key
their signatures as well.`,
		Example: `  locksteward audit verify
  locksteward audit verify --config locksteward.yaml
  locksteward audit verify --anchor /mnt/worm/anchors --public-key audit.pub
  locksteward audit verify --export trail.jsonl.gz --anchor anchors`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := verification{p: p, agent: &agent, from: &from, keys: audit.Keyring{}}
			for _, file := range public {
				k, err := audit.ReadPublicKey(file)
				if err != nil {
					return usagef("--public-key: %w", err)
				}
				v.keys[k.ID()] = k
			}
			for _, file := range anchors {
				if err := v.readAnchors(file); err != nil {
					return err
				}
			}
			out, err := v.run(cmd.Context(), export)
			if err != nil {
				return err
			}
			if output.data() {
				err = output.encode(p.stdout, out)
			} else if out.Whole {
				err = writeVerdict(p.stdout, out)
			}
			if err == nil && !out.Whole {
				err = &store.ChainError{Seq: out.BrokenAt, Problem: out.Problem}
			}
			return err
		},
	}
	agent.register(c)
	from.register(c)
	output.register(c)
	c.Flags().StringVar(&export, "export", "", "verify this export, without any store")
	c.Flags().StringArrayVar(&anchors, "anchor", nil, "file with checkpoints that were written down elsewhere (may be repeated)")
	c.Flags().StringArrayVar(&public, "public-key", nil, "file with the public key of those who sign (may be repeated)")
	c.MarkFlagsMutuallyExclusive("export", "config")
	c.MarkFlagsMutuallyExclusive("export", "store")
	return c
}

// verification is one run of `audit verify`.
type verification struct {
	p       *program
	agent   *agentFlags
	from    *storeFlags
	keys    audit.Keyring
	anchors audit.Anchors
}

func (v *verification) readAnchors(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return usagef("--anchor: %w", err)
	}
	defer f.Close()
	a, err := audit.ReadAnchors(f, v.keys)
	if err != nil {
		return fmt.Errorf("read anchors in %q: %w", file, err)
	}
	v.anchors.Places = append(v.anchors.Places, a.Places...)
	v.anchors.Signed += a.Signed
	v.anchors.Unsigned += a.Unsigned
	return nil
}

func (v *verification) run(ctx context.Context, export string) (auditVerdict, error) {
	out := auditVerdict{Anchors: len(v.anchors.Places), AnchorsSigned: v.anchors.Signed}
	var err error
	switch {
	case export != "":
		err = v.ofExport(export, &out)
	case v.from.given():
		err = v.ofStore(ctx, &out)
	default:
		err = v.ofAgent(ctx, &out)
	}
	out.KeysGiven = len(v.keys) > 0
	for _, a := range v.anchors.Places {
		if a.Seq >= out.Base.Seq {
			out.Anchored++
		}
	}
	if broken, ok := errors.AsType[*store.ChainError](err); ok {
		out.Whole, out.BrokenAt, out.Problem = false, broken.Seq, broken.Problem
		err = nil
	}
	return out, err
}

func (v *verification) ofExport(file string, out *auditVerdict) error {
	f, err := os.Open(file)
	if err != nil {
		return usagef("--export: %w", err)
	}
	defer f.Close()
	tell := v.p.progress()
	began := time.Now()
	found, err := audit.CheckExport(f, audit.CheckOptions{Anchors: v.anchors.Places, Keys: v.keys, Progress: func(done int64) { tell(done, 0) }})
	out.checked(found, err, began)
	if _, broken := errors.AsType[*store.ChainError](err); err != nil && !broken {
		return fmt.Errorf("verify export %q: %w", file, err)
	}
	return err
}

func (v *verification) ofStore(ctx context.Context, out *auditVerdict) (err error) {
	st, own, err := v.from.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if len(v.keys) == 0 {
		v.keys = own
	}
	out.AuditVerified, err = audit.CheckStore(ctx, st, audit.StoreOptions{Keys: v.keys, Anchors: v.anchors.Places, Progress: v.p.progress()})
	return err
}

func (v *verification) ofAgent(ctx context.Context, out *auditVerdict) error {
	client, err := v.agent.client()
	if err != nil {
		return err
	}
	if len(v.anchors.Places) == 0 && len(v.keys) == 0 {
		if out.AuditVerified, err = client.AuditVerify(ctx); err != nil {
			return err
		}
		out.KeysGiven = out.Signed > 0
		return nil
	}
	tell := v.p.progress()
	began := time.Now()
	found, err := audit.CheckSource(ctx, agentTrail{client}, audit.CheckOptions{
		Anchors: v.anchors.Places, Keys: v.keys, Progress: func(done int64) { tell(done, 0) },
	})
	out.checked(found, err, began)
	return err
}

func (o *auditVerdict) checked(c audit.Checked, err error, began time.Time) {
	o.AuditVerified = api.AuditVerified{
		Whole: err == nil, Entries: c.Entries, Base: api.Place{Seq: c.Base.Seq, Hash: c.Base.Hash}, Head: api.Place{Seq: c.Head.Seq, Hash: c.Head.Hash},
		Checkpoints: c.Checkpoints, Signed: c.Signed, DurationMs: time.Since(began).Milliseconds(),
	}
}

func writeVerdict(w io.Writer, v auditVerdict) error {
	var b strings.Builder
	fmt.Fprintf(&b, "the audit trail is whole: %s, %d to %d\n", plural.Count(v.Entries, "entry"), v.Base.Seq+1, v.Head.Seq)
	if v.Head.Hash != "" {
		fmt.Fprintf(&b, "its head is %s\n", v.Head.Hash)
	}
	switch {
	case v.Checkpoints == 0:
		b.WriteString("no checkpoints in it\n")
	case v.Signed == 0 && !v.KeysGiven:
		fmt.Fprintf(&b, "%s on it; signatures were not checked: give --public-key FILE\n", plural.Count(v.Checkpoints, "checkpoint"))
	default:
		fmt.Fprintf(&b, "%s on it, %d with a good signature\n", plural.Count(v.Checkpoints, "checkpoint"), v.Signed)
	}
	if v.Anchors == 0 {
		b.WriteString("no anchor was given: a trail that was rewritten as a whole, or cut off with its head, looks like this too\n")
	} else {
		fmt.Fprintf(&b, "%d of %d anchors on it (%d with a good signature); %d are of before its begin\n",
			v.Anchored, v.Anchors, v.AnchorsSigned, v.Anchors-v.Anchored)
	}
	return writeText(w, b.String())
}
