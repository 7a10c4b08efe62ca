package expr

import (
	"strings"
	"sync"
	"testing"
)

// A configuration is checked while another is loaded: the first undeclared name
// of an environment must not race with an expression that has a macro.
func TestCheckIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	macros := strings.TrimSuffix(strings.Repeat("['a'].exists(x, x == target) || ", 20), " || ")
	for range 10 {
		e, err := newEnvironment()
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, issues := check(e, macros+" || nothing.at.all"); issues.Err() == nil {
					t.Error("an undeclared name was accepted")
				}
			})
			wg.Go(func() {
				if _, issues := check(e, macros); issues.Err() != nil {
					t.Error(issues.Err())
				}
			})
		}
		wg.Wait()
	}
}
