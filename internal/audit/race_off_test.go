//go:build !race

package audit_test

// mutations is how many random changes of an export are made.
const mutations = 10_000
