package etcdsource

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Ping asks a member for a sign of life; a refused right is one.
func (s *Source) Ping(ctx context.Context) error {
	return s.conn.do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		return allowed(get(ctx, client, probe, clientv3.WithSerializable()))
	})
}
