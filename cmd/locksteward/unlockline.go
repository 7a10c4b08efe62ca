package main

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/internal/unlock"
)

// addUnlockLines gives each finding on a lock that can be released safely the
// command that does it.
func addUnlockLines(out *api.Scan, result scan.Result, server []string, url string) {
	locks := map[string]locksteward.Lock{}
	for _, l := range result.Sweep.Locks {
		locks[l.Key] = l
	}
	for i, f := range result.Findings {
		l, ok := locks[f.Key]
		if !ok || f.Key == "" || l.TooLarge || scan.WhyNever(l.Library) != "" {
			continue
		}
		if condition, ok := unlock.ConditionOf(l.Observation, result.Salt); ok {
			out.Findings[i].Unlock = unlockLine(server, url, l, condition)
		}
	}
}

// unlockLine is the whole command but for the reason, which is asked for; server and
// url are the flags and the argument that name the server.
func unlockLine(server []string, url string, l locksteward.Lock, condition unlock.Condition) string {
	key, extra := l.Key, []string(nil)
	if !utf8.ValidString(key) {
		key, extra = base64.StdEncoding.EncodeToString([]byte(key)), []string{"--base64"}
	}
	words := append([]string{"locksteward", "unlock"}, server...)
	words = append(words, "--if", condition.String())
	words = append(words, extra...)
	var line strings.Builder
	for _, w := range words {
		line.WriteString(unlock.ShellWord(w) + " ")
	}
	// The shell of who pastes this without a reason gives an empty one, which is
	// refused.
	line.WriteString(`--reason "$REASON" -- ` + unlock.ShellWord(key))
	if url != "" {
		line.WriteString(" " + unlock.ShellWord(url))
	}
	return line.String()
}
