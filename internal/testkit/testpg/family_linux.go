package testpg

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// family returns the children of a process.
func family(parent int) ([]member, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []member
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // It has ended meanwhile.
		}
		// "7 (any name) S 1 …": the name may have brackets of its own.
		rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			out = append(out, member{pid: pid, state: f[0][0]})
		}
	}
	return out, nil
}
