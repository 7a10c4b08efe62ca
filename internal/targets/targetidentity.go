package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

// targetIdentity is the deployment that a target's URL names, without credentials.
type targetIdentity struct {
	Sentinel bool     `json:"sentinel,omitempty"`
	Master   string   `json:"master,omitempty"`
	DB       int      `json:"db"`
	Addrs    []string `json:"addrs"`
	// Store and Name are of stores other than Redis: their kind, and the database or directory.
	Store lockstore.Kind `json:"store,omitempty"`
	Name  string         `json:"name,omitempty"`
}

func identityOf(t config.Target) (targetIdentity, error) {
	a, err := lockstore.Parse(t.URL)
	if err != nil {
		return targetIdentity{}, err
	}
	p := targetIdentity{Sentinel: a.Mode == locksteward.ModeSentinel, DB: a.DB}
	for _, host := range a.Hosts {
		if !strings.HasPrefix(host, "/") { // the path of a socket
			host = strings.ToLower(host)
		}
		p.Addrs = append(p.Addrs, host)
	}
	slices.Sort(p.Addrs)
	if a.Kind == lockstore.Redis {
		p.Master = a.Name
	} else {
		p.Store, p.Name = a.Kind, a.Name
	}
	return p, nil
}

// same says whether both mean one deployment: of several nodes one may have been
// replaced.
func (p targetIdentity) same(o targetIdentity) bool {
	return p.Store == o.Store && p.Name == o.Name && p.Sentinel == o.Sentinel && p.Master == o.Master && p.DB == o.DB &&
		slices.ContainsFunc(p.Addrs, func(addr string) bool { return slices.Contains(o.Addrs, addr) })
}

func (p targetIdentity) String() string {
	text := strings.Join(p.Addrs, ",")
	if p.Store != "" {
		return fmt.Sprintf("%s %s/%s", p.Store, text, p.Name)
	}
	if p.Sentinel {
		text += " master " + p.Master
	}
	return fmt.Sprintf("%s database %d", text, p.DB)
}

// Renamed refuses a name that would lead to another server than now: findings,
// requests and histories under it are about the locks of that one.
func Renamed(old, cfg config.Config) error {
	var errs []error
	for i, t := range cfg.Targets {
		at := slices.IndexFunc(old.Targets, func(o config.Target) bool { return o.Name == t.Name })
		if at < 0 {
			continue
		}
		was, errWas := identityOf(old.Targets[at])
		is, errIs := identityOf(t)
		if errWas != nil || errIs != nil || was.same(is) {
			continue // a URL that cannot be read was refused already
		}
		errs = append(errs, fmt.Errorf("targets[%d].url: %w: %q leads to %s and would lead to %s, while its findings, requests and histories are about the locks of the first; "+
			"give the other server a name of its own, or restart the agent if it has the same locks at a new address", i, locksteward.ErrConflict, t.Name, was, is))
	}
	return errors.Join(errs...)
}

// identitySetting is the setting in which the store keeps the identity of a target.
func identitySetting(name string) string { return "target_identity:" + name }

// move compares the identity of a target with that of the last time it was watched.
type move struct {
	was, is targetIdentity
	text    string // was, as the store has it
	// elsewhere says that these are two deployments.
	elsewhere bool
}

// moveOf compares the identity of a target with the stored one. It changes nothing.
func (d Deps) moveOf(ctx context.Context, t config.Target) (m move, err error) {
	if m.is, err = identityOf(t); err != nil {
		return move{}, err
	}
	if m.text, err = d.Store.LoadSetting(ctx, identitySetting(t.Name)); err != nil {
		return move{}, err
	}
	known := m.text != "" && json.Unmarshal([]byte(m.text), &m.was) == nil
	m.elsewhere = known && !m.was.same(m.is)
	return m, nil
}

// Reconcile compares where the target leads with where it led when it was watched
// last. If that is another server, what is known under its name
// is about locks that are not there: its findings end as those of a target that is
// watched no longer, its open requests as superseded, and its histories begin anew.
// Nothing of it says that a lock is gone.
func (w *Watched) Reconcile(ctx context.Context) error {
	if w.reconciled {
		return nil
	}
	if err := w.deps.reconcile(ctx, w.cfg); err != nil {
		return fmt.Errorf("target %q: reconcile: which server it is: %w", w.target.Name, err)
	}
	w.reconciled = true
	return nil
}

// awaitReconciled reconciles until that succeeds; false if ctx ends first. Until then nothing of the target is judged.
func (w *Watched) awaitReconciled(ctx context.Context) bool {
	for {
		err := w.Reconcile(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		w.log.Error("the target is not watched yet: it is tried again", zap.Error(err))
		select {
		case <-ctx.Done():
			return false
		case <-time.After(keepEvery):
		}
	}
}

func (d Deps) reconcile(ctx context.Context, t config.Target) error {
	m, err := d.moveOf(ctx, t)
	if err != nil {
		return err
	}
	was, is := m.was, m.is
	raw, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("encode the identity of the target: %w", err)
	}
	switch {
	case m.text == string(raw):
		return nil
	case !m.elsewhere:
		return d.Store.SaveSetting(ctx, identitySetting(t.Name), string(raw))
	}
	now := time.Now()
	why := fmt.Sprintf("%q led to %s and leads to %s", t.Name, was, is)
	findings, err := d.endFindings(ctx, t.Name, now)
	if err != nil {
		return err
	}
	requests, err := d.endRequests(ctx, t.Name, why, now)
	if err != nil {
		return err
	}
	if err := d.forgetHistory(ctx, t.Name); err != nil {
		return err
	}
	d.Log.Warn("the target leads to another server than when it was watched last: its findings and open requests end, whatever became of the locks there",
		zap.String("target", t.Name), zap.Stringer("was", was), zap.Stringer("is", is), zap.Int("findings", findings), zap.Int("requests", requests))
	// Last: what was not settled is settled by the next start.
	return d.Store.SaveSetting(ctx, identitySetting(t.Name), string(raw), locksteward.Entry{
		At: now, Actor: "agent", Action: "target.moved", Target: t.Name, Reason: why,
	})
}

// endFindings ends the findings on a target that nobody watches now.
func (d Deps) endFindings(ctx context.Context, target string, now time.Time) (int, error) {
	findings, err := d.Store.LoadFindings(ctx, target)
	if err != nil || len(findings) == 0 {
		return 0, err
	}
	d.Engine.Restore(findings)
	var ended []locksteward.Transition
	for _, t := range d.Engine.RemoveTarget(target, now) {
		if rules.Notifies(t.Finding) {
			ended = append(ended, t)
		}
	}
	return len(findings), d.Store.SaveFindings(ctx, target, nil, store.Outgoing{Events: d.Alerts.Events(ended, nil, nil)})
}

// endRequests ends the open requests about locks of a target: nothing may be
// executed on another server than the one that was looked at.
func (d Deps) endRequests(ctx context.Context, target, why string, now time.Time) (int, error) {
	list, err := d.Store.QueryRequests(ctx, store.RequestQuery{Target: target, States: []locksteward.RequestState{
		locksteward.RequestPending, locksteward.RequestApproved, locksteward.RequestExecuting,
	}})
	if err != nil {
		return 0, err
	}
	for _, r := range list {
		_, err := d.Store.UpdateRequest(ctx, r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
			r.Outcome = "Superseded: the target leads to another server. Nothing was touched."
			to, action := locksteward.RequestSuperseded, release.ActionSupersede
			if r.State == locksteward.RequestExecuting {
				to, action = locksteward.RequestUnknown, release.ActionExecute
				r.Outcome = "Unknown: the target leads to another server, so that what became of it cannot be read."
			}
			r.State, r.FinishedAt = to, now
			return []locksteward.Entry{{
				At: now, Actor: release.AgentName, Action: action, Target: target, Key: r.Evidence.Key, Subject: r.ID, Reason: why, Outcome: string(to),
			}}, nil
		})
		if err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// forgetHistory drops what would be carried over from one look at a target to the
// next.
func (d Deps) forgetHistory(ctx context.Context, target string) error {
	rows, err := d.Store.LoadHistory(ctx, target)
	if err != nil {
		return err
	}
	gone := make([]scanner.HistoryKey, 0, len(rows))
	for _, r := range rows {
		gone = append(gone, scanner.HistoryKey{DB: r.DB, Key: r.Key})
	}
	return errors.Join(
		d.Store.SaveHistory(ctx, target, nil, gone),
		d.Store.SaveFacts(ctx, target, ""),
		d.Store.SaveOrders(ctx, target, ""),
	)
}
