package redisproc

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Version is which server a program is.
type Version struct {
	Valkey              bool
	Major, Minor, Patch int
}

// String returns "redis 7.0.15" or "valkey 8.1.1".
func (v Version) String() string {
	name := "redis"
	if v.Valkey {
		name = "valkey"
	}
	return fmt.Sprintf("%s %d.%d.%d", name, v.Major, v.Minor, v.Patch)
}

// AtLeast says that the server has what came with that version of Redis. Valkey
// left Redis at 7.2 and has nothing of later ones.
func (v Version) AtLeast(major, minor int) bool {
	if v.Valkey {
		return major < 7 || major == 7 && minor <= 2
	}
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// "Redis server v=7.0.15 sha=…", "Valkey server v=8.0.1 sha=…"
var versionLine = regexp.MustCompile(`^(\w+) server v=(\d+)\.(\d+)\.(\d+)`)

// versions remembers the answers, by path: a test run starts hundreds of servers.
var versions sync.Map

// VersionOf asks a server program which version it is.
func VersionOf(program string) (Version, error) {
	if v, ok := versions.Load(program); ok {
		return v.(Version), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return Version{}, fmt.Errorf("ask %s for its version: %w", program, err)
	}
	v, err := parseVersion(string(out))
	if err != nil {
		return Version{}, fmt.Errorf("ask %s for its version: %w", program, err)
	}
	versions.Store(program, v)
	return v, nil
}

func parseVersion(text string) (v Version, err error) {
	m := versionLine.FindStringSubmatch(text)
	if m == nil {
		return v, fmt.Errorf("it says %q", text)
	}
	v.Valkey = strings.EqualFold(m[1], "valkey")
	for i, to := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if *to, err = strconv.Atoi(m[2+i]); err != nil {
			return v, err
		}
	}
	return v, nil
}

// settings7 came with Redis 7.0: servers before it do not start with them, and
// behave as if each had been "yes".
var settings7 = []string{"enable-debug-command", "enable-protected-configs", "enable-module-command"}
