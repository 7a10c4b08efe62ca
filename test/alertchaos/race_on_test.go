//go:build race

package alertchaos_test

// raced says that the race detector makes everything several times as slow.
const raced = true
