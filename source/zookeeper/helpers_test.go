package zksource_test

import (
	"crypto/rand"
	"fmt"
)

// uuid is what Curator puts into the names of its nodes.
func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
