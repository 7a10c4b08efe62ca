package lockstore

import (
	"context"

	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

// ZooKeeper is the kind of ZooKeeper.
const ZooKeeper Kind = "zookeeper"

var zookeeper = scheme{
	kind: ZooKeeper, port: "2181", example: "zookeeper://a:2181,b:2181/chroot", parameters: []string{"admin_port"}, encrypted: "zookeeper+tls://a:2281,b:2281/chroot",
	open: func(l source.Login, o Options) (reader, func() error, error) {
		s, err := zksource.Open(l, zksource.Options{Digest: o.Digest})
		if err != nil {
			return nil, nil, err
		}
		return s, func() error { s.Close(); return nil }, nil
	},
	releaser: func(l source.Login, o ReleaserOptions) (source.Releaser, error) {
		return zksource.OpenReleaser(l, zksource.ReleaserOptions{Digest: o.Digest})
	},
	rights: func(_ context.Context, l source.Login, o RightsOptions) (string, error) {
		return zksource.Rights(l.Username, o.Releaser, o.Classes), nil
	},
	check: func(ctx context.Context, l source.Login, o ExamineOptions) []source.Check {
		s, err := zksource.Open(l, zksource.Options{})
		if err != nil {
			return badSettings("server", err)
		}
		defer s.Close()
		s.SetClasses(o.Classes)
		return s.Check(ctx)
	},
	checkReleaser: func(ctx context.Context, l source.Login, _ ExamineOptions) []source.Check {
		r, err := zksource.OpenReleaser(l, zksource.ReleaserOptions{})
		if err != nil {
			return badSettings("records", err)
		}
		return r.Check(ctx)
	},
}

// zookeeperTLS is ZooKeeper with TLS.
var zookeeperTLS = func() scheme {
	s := zookeeper
	s.port, s.tls = "2281", true
	return s
}()
