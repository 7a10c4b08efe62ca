package store

import (
	"context"

	"github.com/locksteward/locksteward/scanner"
)

// Names of the settings that hold, for each target, what its scanner and the
// rules know beyond its locks.
const (
	settingFacts  = "facts:"
	settingOrders = "orders:"
)

// SaveFacts keeps what the scanner of a target knows beyond its locks, in place
// of what was kept before.
func (s *Store) SaveFacts(ctx context.Context, target, facts string) error {
	return s.saveOf(ctx, "save facts", settingFacts, target, facts)
}

// LoadFacts returns what [Store.SaveFacts] kept last, "" if nothing.
func (s *Store) LoadFacts(ctx context.Context, target string) (string, error) {
	return s.setting(ctx, "load facts", settingFacts+target)
}

// SaveOrders keeps what the rules know of the orders in which the classes of a
// target are taken, in place of what was kept before.
func (s *Store) SaveOrders(ctx context.Context, target, orders string) error {
	return s.saveOf(ctx, "save orders", settingOrders, target, orders)
}

// LoadOrders returns what [Store.SaveOrders] kept last, "" if nothing.
func (s *Store) LoadOrders(ctx context.Context, target string) (string, error) {
	return s.setting(ctx, "load orders", settingOrders+target)
}

func (s *Store) saveOf(ctx context.Context, what, setting, target, value string) error {
	return s.inOwn(ctx, what, func(ctx context.Context, t *tx) error {
		if err := s.leased(ctx, t, target); err != nil {
			return err
		}
		return t.insert(ctx, "settings", "name, value", "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			[][]any{{setting + target, text(value)}})
	})
}

var _ scanner.FactStore = (*Store)(nil)
