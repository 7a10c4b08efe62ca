package record_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// The scripts have numbers of this package.
func TestScriptsHaveTheNumbers(t *testing.T) {
	t.Parallel()
	acquire, release := script(t, "acquire"), script(t, "release")
	for name, c := range map[string]struct {
		script, expression string
		want               time.Duration
	}{
		"Turn":        {acquire, `\nlocal TURN, LIFE = (\d+), \d+ `, record.Turn},
		"WaiterLife":  {acquire, `\nlocal TURN, LIFE = \d+, (\d+) `, record.WaiterLife},
		"WaiterGrace": {acquire, `'PEXPIRE', queue, LIFE \+ (\d+)\)`, record.WaiterGrace},
		"waiters":     {acquire, `'PEXPIRE', waiters, LIFE \+ (\d+)\)`, record.WaiterGrace},
		"Grace":       {release, `\nlocal GRACE = (\d+) `, record.Grace},
	} {
		found := regexp.MustCompile(c.expression).FindAllStringSubmatch(c.script, -1)
		if len(found) != 1 || found[0][1] != strconv.FormatInt(c.want.Milliseconds(), 10) {
			t.Errorf("%s: the script has %q, want %d", name, found, c.want.Milliseconds())
		}
	}
}

func script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
