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
	examine: func(ctx context.Context, login source.Login, release *source.Login, o ExamineOptions) []source.Check {
		s, err := zksource.Open(login, zksource.Options{})
		if err != nil {
			return []source.Check{checkOf("server", false, err.Error(), "correct the settings")}
		}
		defer s.Close()
		s.SetClasses(o.Classes)
		var out []source.Check
		for _, c := range s.Check(ctx) {
			out = append(out, checkOf(c.Name, c.OK, c.Found, c.Todo))
		}
		if release == nil {
			return out
		}
		r, err := zksource.OpenReleaser(*release, zksource.ReleaserOptions{})
		if err != nil {
			return append(out, checkOf("releaser", false, err.Error(), "correct the settings"))
		}
		c := r.Check(ctx)
		return append(out, checkOf("releaser: "+c.Name, c.OK, c.Found, c.Todo))
	},
}

// zookeeperTLS is ZooKeeper with TLS.
var zookeeperTLS = func() scheme {
	s := zookeeper
	s.port, s.tls = "2281", true
	return s
}()
