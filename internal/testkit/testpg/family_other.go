//go:build !linux

package testpg

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// family returns the children of a process.
func family(parent int) ([]member, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var members []member
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(f[0]); err == nil {
			members = append(members, member{pid: pid, state: f[2][0]})
		}
	}
	return members, nil
}
