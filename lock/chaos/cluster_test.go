package chaos_test

import "testing"

func newSentinel(t *testing.T) *bed { return nil }
func newCluster(t *testing.T) *bed  { return nil }

func allNemeses() (all []nemesis) {
	for _, list := range [][]nemesis{serverNemeses, networkNemeses, dataNemeses, clockNemeses, processNemeses} {
		all = append(all, list...)
	}
	return all
}
