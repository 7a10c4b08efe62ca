//go:build !race

package lock_test

// raced says that the race detector makes everything several times as slow.
const raced = false
