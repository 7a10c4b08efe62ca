package console

import (
	"time"

	"github.com/locksteward/locksteward/internal/oidclogin"
	"github.com/locksteward/locksteward/internal/signin"
)

// newProvider returns the provider that is configured, nil if there is none. It
// asks nothing of it.
func newProvider(cfg *signin.OIDCConfig, now func() time.Time) (provider, error) {
	if cfg == nil {
		return nil, nil
	}
	return oidclogin.New(*cfg, now)
}
