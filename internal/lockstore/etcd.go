package lockstore

import (
	"context"

	"github.com/locksteward/locksteward/source"
	etcdsource "github.com/locksteward/locksteward/source/etcd"
)

// Etcd is the kind of etcd.
const Etcd Kind = "etcd"

var etcd = scheme{
	kind: Etcd, port: "2379", example: "etcd://a:2379,b:2379", encrypted: "etcds://a:2379,b:2379",
	open: func(l source.Login, o Options) (reader, func() error, error) {
		s, err := etcdsource.Open(l, etcdsource.Options{Digest: o.Digest})
		if err != nil {
			return nil, nil, err
		}
		return s, func() error { s.Close(); return nil }, nil
	},
	releaser: func(l source.Login, o ReleaserOptions) (source.Releaser, error) {
		return etcdsource.OpenReleaser(l, etcdsource.Options{Digest: o.Digest})
	},
	rights: func(_ context.Context, _ source.Login, o RightsOptions) (string, error) {
		return etcdsource.Rights(o.Classes), nil
	},
	check: func(ctx context.Context, l source.Login, o ExamineOptions) []source.Check {
		return etcdsource.Examine(ctx, l, o.Classes, false)
	},
	checkReleaser: func(ctx context.Context, l source.Login, o ExamineOptions) []source.Check {
		return etcdsource.Examine(ctx, l, o.Classes, true)
	},
}

// etcds is etcd with TLS.
var etcds = func() scheme {
	s := etcd
	s.tls = true
	return s
}()
