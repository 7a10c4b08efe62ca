package fenced_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/fenced"
)

// The functions here are the snippets of docs/fencing.md.

func saveOrder(ctx context.Context, client *lock.Client, rdb redis.UniversalClient, body string) error {
	return client.Do(ctx, "lock:order:42", lock.Lease{TTL: 30 * time.Second}, func(ctx context.Context, fence int64) error {
		return fenced.Set(ctx, rdb, "order:42", fence, body)
	})
}

func payOrder(ctx context.Context, client *lock.Client, db *sql.DB) error {
	return client.Do(ctx, "lock:order:42", lock.Lease{TTL: 30 * time.Second}, func(ctx context.Context, fence int64) error {
		return orders.Update(ctx, db, 42, fence, "paid")
	})
}

func moveStock(ctx context.Context, client *lock.Client, db *sql.DB) error {
	return client.Do(ctx, "lock:stock:42", lock.Lease{TTL: 30 * time.Second}, func(ctx context.Context, fence int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fenced.Guard(ctx, tx, "stock:42", fence); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE stock SET state = 'moved' WHERE id = 42`); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func TestSnippetsOfThePage(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	db := database(t)
	ctx := t.Context()
	client, err := lock.New(rdb, lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	if err := errors.Join(saveOrder(ctx, client, rdb, "paid"), payOrder(ctx, client, db), moveStock(ctx, client, db)); err != nil {
		t.Fatal(err)
	}
	value, first, err := fenced.Get(ctx, rdb, "order:42")
	if err != nil || value != "paid" || stateOf(t, db, "orders") != "paid" || stateOf(t, db, "stock") != "moved" {
		t.Errorf("redis %q (%v), row %q, stock %q", value, err, stateOf(t, db, "orders"), stateOf(t, db, "stock"))
	}
	// What they wrote carries the fences of their holds.
	for _, r := range resources(rdb, db) {
		if !r.fenced {
			continue
		}
		if err := r.write(ctx, first-1, "late"); !errors.Is(err, fenced.ErrStale) {
			t.Errorf("%s: a write with an earlier fence: %v", r.name, err)
		}
	}
}
