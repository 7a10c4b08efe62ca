package store

import (
	"context"

	"github.com/locksteward/locksteward/scanner"
)

// Prefixes of settings that hold, for each target, the knowledge of its scanner and of the
// rules beyond its locks.
const (
	settingFacts  = "facts:"
	settingOrders = "orders:"
)

// SaveFacts writes the knowledge of a target's scanner beyond its locks, replacing the
// previous one.
func (s *Store) SaveFacts(ctx context.Context, target, facts string) error {
	return s.saveForTarget(ctx, "save facts", settingFacts, target, facts)
}

// LoadFacts returns what [Store.SaveFacts] wrote, "" if nothing.
func (s *Store) LoadFacts(ctx context.Context, target string) (string, error) {
	return s.setting(ctx, "load facts", settingFacts+target)
}

// SaveOrders writes the knowledge of the rules about the orders in which classes of a
// target are locked, replacing the previous one.
func (s *Store) SaveOrders(ctx context.Context, target, orders string) error {
	return s.saveForTarget(ctx, "save orders", settingOrders, target, orders)
}

// LoadOrders returns what [Store.SaveOrders] wrote, "" if nothing.
func (s *Store) LoadOrders(ctx context.Context, target string) (string, error) {
	return s.setting(ctx, "load orders", settingOrders+target)
}

func (s *Store) saveForTarget(ctx context.Context, op, setting, target, value string) error {
	return s.inOwn(ctx, op, func(ctx context.Context, t *tx) error {
		if err := s.leased(ctx, t, target); err != nil {
			return err
		}
		return t.insert(ctx, "settings", "name, value", "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			[][]any{{setting + target, text(value)}})
	})
}

var _ scanner.FactStore = (*Store)(nil)
