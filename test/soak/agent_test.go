package soak_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
)

// newReplica writes what one agent of two needs and starts none.
func newReplica(t *testing.T, name, text string) *testagent.Agent {
	t.Helper()
	o := testagent.Options{
		Name: name, Config: text + fmt.Sprintf("cluster: {name: %s}\n", name), Program: *program, Within: within,
	}
	if *logs != "" {
		o.Log = filepath.Join(*logs, name+".log")
	}
	return testagent.New(t, o)
}
