//go:build !race

package store_test

// mutations is how many random changes of the trail are made.
const mutations = 10_000
