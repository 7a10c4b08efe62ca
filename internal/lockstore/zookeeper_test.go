package lockstore_test

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func TestZooKeeperURLs(t *testing.T) {
	t.Parallel()
	plain, err := lockstore.Parse("zookeeper://a/chroot")
	if err != nil || plain.TLS || plain.Hosts[0] != "a:2181" || plain.Name != "chroot" {
		t.Errorf("%+v, %v", plain, err)
	}
	secure, err := lockstore.Parse("zookeeper+tls://u@a,b:2282/chroot")
	if err != nil || !secure.TLS || secure.Kind != lockstore.ZooKeeper || strings.Join(secure.Hosts, " ") != "a:2281 b:2282" || secure.Username != "u" {
		t.Errorf("%+v, %v", secure, err)
	}
	if err := lockstore.Validate(connect.Config{URL: plain.String(), ServerName: "zk"}); err == nil || !strings.Contains(err.Error(), "write zookeeper+tls://a:2281") {
		t.Errorf("TLS settings without TLS: %v", err)
	}
	if err := lockstore.Validate(connect.Config{URL: secure.String(), ServerName: "zk"}); err != nil {
		t.Error(err)
	}
}
