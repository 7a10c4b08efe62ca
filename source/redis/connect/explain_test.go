package connect_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// TestExplain looks at real refusals: each must say what is wrong and what to
// do, and never show the password.
func TestExplain(t *testing.T) {
	t.Parallel()
	acl := []string{
		"default off",
		"scanner on >" + sesame + " %R~* -@all +hello +ping +info +client|setname",
	}
	tests := map[string]struct {
		opts []testredis.Option
		cfg  func(*testredis.Server) connect.Config
		want string
	}{
		"no password": {
			opts: []testredis.Option{testredis.WithACL(acl...)},
			cfg:  func(s *testredis.Server) connect.Config { return connect.Config{URL: s.URL()} },
			want: "password",
		},
		"wrong password": {
			opts: []testredis.Option{testredis.WithACL(acl...)},
			cfg: func(s *testredis.Server) connect.Config {
				return connect.Config{URL: s.URL(), Username: "scanner", Password: "not-" + sesame}
			},
			want: "check username and password_file",
		},
		"no permission": {
			opts: []testredis.Option{testredis.WithACL(acl...)},
			cfg: func(s *testredis.Server) connect.Config {
				return connect.Config{URL: s.URL(), Username: "scanner", Password: sesame}
			},
			want: "run scan; grant what `locksteward acl` prints",
		},
		"unknown authority": {
			opts: []testredis.Option{testredis.WithTLS()},
			cfg:  func(s *testredis.Server) connect.Config { return connect.Config{URL: s.URL()} },
			want: "set ca_file",
		},
		"plain to tls": {
			opts: []testredis.Option{testredis.WithTLS()},
			cfg: func(s *testredis.Server) connect.Config {
				return connect.Config{URL: strings.Replace(s.URL(), "rediss:", "redis:", 1)}
			},
			want: "if it wants TLS write rediss://",
		},
		"tls to plain": {
			cfg: func(s *testredis.Server) connect.Config {
				return connect.Config{URL: strings.Replace(s.URL(), "redis:", "rediss:", 1), DialTimeout: 2 * time.Second}
			},
			want: "redis:// instead of rediss://",
		},
		"no such database": {
			cfg: func(s *testredis.Server) connect.Config {
				return connect.Config{URL: strings.TrimSuffix(s.URL(), "/0") + "/99"}
			},
			want: "no such database",
		},
		"paused": {
			cfg: func(s *testredis.Server) connect.Config {
				s.Pause()
				return connect.Config{URL: s.URL(), ReadTimeout: 50 * time.Millisecond}
			},
			want: "no answer in time",
		},
		"killed": {
			cfg: func(s *testredis.Server) connect.Config {
				s.Kill()
				return connect.Config{URL: s.URL()}
			},
			want: "connection refused",
		},
		"no socket": {
			cfg:  func(*testredis.Server) connect.Config { return connect.Config{URL: "unix:///does/not/exist.sock"} },
			want: "socket does not exist",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := open(t, test.cfg(testredis.Start(t, test.opts...)))
			masters, err := conn.Masters(t.Context())
			if err == nil {
				_, _, err = masters[0].Client.Scan(t.Context(), 0, "", 10).Result()
			}
			if err == nil {
				t.Fatal("no error")
			}
			got := connect.Explain(err)
			if !strings.Contains(got, test.want) {
				t.Errorf("Explain(%v) = %q, want it to contain %q", err, got, test.want)
			}
			if strings.Contains(got+err.Error(), sesame) {
				t.Errorf("shows the password: %q, %v", got, err)
			}
		})
	}
}

func TestExplainServerErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"LOADING Redis is loading the dataset in memory": "loading its data",
		"BUSY Redis is busy running a script":            "SCRIPT KILL",
		"ERR max number of clients reached":              "maxclients",
		"CLUSTERDOWN Hash slot not served":               "cluster",
		"MASTERDOWN Link with MASTER is down":            "replica",
		"MISCONF Redis is configured to save":            "save",
	} {
		srv := fakeServer(t, func(string) string { return "-" + text + "\r\n" })
		conn := open(t, connect.Config{URL: "redis://" + srv})
		_, err := conn.Masters(t.Context())
		if got := connect.Explain(err); !strings.Contains(got, want) {
			t.Errorf("Explain(%v) = %q, want it to contain %q", err, got, want)
		}
	}
	if got := connect.Explain(nil); got != "" {
		t.Errorf("Explain(nil) = %q", got)
	}
	if got := connect.Explain(errors.New("line\none " + strings.Repeat("x", 500))); len(got) > 300 || strings.Contains(got, "\n") {
		t.Errorf("a long foreign error is passed on as %q", got)
	}
	if got := connect.Explain(&net.DNSError{Name: "nowhere.invalid"}); !strings.Contains(got, "nowhere.invalid") {
		t.Errorf("DNS: %q", got)
	}
	if got := connect.Explain(context.Canceled); !strings.Contains(got, "interrupted") {
		t.Errorf("canceled: %q", got)
	}
}
