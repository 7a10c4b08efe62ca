//go:build race

package audit_test

// mutations is fewer where each takes ten times as long.
const mutations = 1_000
