// Package live_test takes locks with the real lock libraries of Go and Node.js,
// reads them with the real scanner, frees them by the real executor and sees who
// gets them. It is a module of its own, so that nobody who uses Locksteward
// downloads other lock libraries.
package live_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
