package acl_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/acl"
)

var update = flag.Bool("update", false, "write the lists of docs/acl.md anew")

const page = "../../../docs/acl.md"

// wrap breaks a line of rules at blanks.
func wrap(text string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && width+len(word) > 110:
			b.WriteString("\n  ")
			width = 2
		case i > 0:
			b.WriteString(" ")
		}
		b.WriteString(word)
		width += 1 + len(word)
	}
	return b.String()
}

// generated are the parts of docs/acl.md that this package writes.
func generated(t *testing.T) string {
	t.Helper()
	v := version(t, "7.0")
	classes := []class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Release: class.ReleaseApprove}}
	users := []acl.User{
		scannerOf(t, v, acl.Scan{}),
		releaserOf(t, v, acl.Free{Classes: classes}),
		appOf(t, v, acl.App{Name: "billing", Locks: []string{"lock:billing:*"}, KeyPrefix: "billing:ls:"}),
	}
	var b strings.Builder
	users = append(users, sentinelOf(t, v, acl.Ask{}), sentinelOf(t, v, acl.Ask{Name: "billing", Follow: true}))
	for _, u := range users {
		heading := u.Name
		if strings.Contains(u.For, "on each Sentinel") {
			heading += ", on Sentinels"
		}
		fmt.Fprintf(&b, "### %s\n\nFor %s. Redis 7.0:\n\n```\n%s\n```\n\n", heading, u.For, wrap(u.SetUser()))
	}
	b.WriteString("### What each command is for\n\nWith the version from which on Redis has it, where that is later than 5.\n\n| command | scanner | releaser | application | Sentinels | for |\n|---|:-:|:-:|:-:|:-:|---|\n")
	newest := version(t, "8.0")
	lists := [][]string{
		scannerOf(t, newest, acl.Scan{}).Commands, releaserOf(t, newest, acl.Free{Classes: classes}).Commands,
		appOf(t, newest, acl.App{Name: "billing", Locks: []string{"*"}, DB: 1, Cluster: true}).Commands,
		sentinelOf(t, newest, acl.Ask{Follow: true}).Commands,
	}
	rows := map[string][]string{} // commands by their users and purpose
	var order []string
	for _, f := range acl.Facts() {
		of := make([]string, len(lists))
		for i, list := range lists {
			if slices.Contains(list, "+"+f.Name) {
				of[i] = "•"
			}
		}
		if !slices.Contains(of, "•") {
			continue // of other modes
		}
		row := fmt.Sprintf("%s | %s", strings.Join(of, " | "), acl.Why(f.Name))
		if rows[row] == nil {
			order = append(order, row)
		}
		name := "`" + strings.ReplaceAll(f.Name, "|", `\|`) + "`"
		if f.Major > 5 {
			name += fmt.Sprintf(" (%d.%d)", f.Major, f.Minor)
		}
		rows[row] = append(rows[row], name)
	}
	for _, row := range order {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(rows[row], ", "), row)
	}
	b.WriteString("\n### What differs between servers\n\n| server | the scanner has, compared with 7.0 |\n|---|---|\n")
	base := scannerOf(t, v, acl.Scan{}).Rules()
	for _, other := range acl.Known {
		rules := scannerOf(t, other, acl.Scan{}).Rules()
		diff := []string{}
		for _, r := range rules {
			if !slices.Contains(base, r) {
				diff = append(diff, "`"+strings.ReplaceAll(r, "|", `\|`)+"`")
			}
		}
		for _, r := range base {
			if !slices.Contains(rules, r) {
				diff = append(diff, "no `"+strings.ReplaceAll(r, "|", `\|`)+"`")
			}
		}
		if len(diff) == 0 {
			diff = []string{"the same"}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", other, strings.Join(diff, ", "))
	}
	return b.String()
}

// docs/acl.md prints the lists as the code has them; -update writes them.
func TestDocsPrintTheLists(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- generated: go test ./source/redis/acl -run TestDocsPrintTheLists -update -->\n", "<!-- end -->\n"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	was, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for what is generated", page)
	}
	want := "\n" + generated(t) + "\n"
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != want {
		t.Errorf("%s is not what the code says; run it with -update", page)
	}
}

// What the scripts of lock/ call, the application may call.
func TestApplicationCoversTheScripts(t *testing.T) {
	t.Parallel()
	u := appOf(t, version(t, "7.0"), acl.App{Name: "a", Locks: []string{"*"}, Cluster: true})
	for _, name := range []string{"acquire", "renew", "release", "internal/heartbeat/beat", "redlock/raise"} {
		raw, err := os.ReadFile("../../../lock/" + name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		calls := bytes.Split(raw, []byte("call('"))[1:]
		if len(calls) == 0 {
			t.Errorf("no call found in %s.lua", name)
		}
		for _, part := range calls {
			command, _, _ := strings.Cut(string(part), "'")
			granted := func(rule string) bool {
				name, _, _ := strings.Cut(rule, "|") // of PUBSUB only two subcommands are granted
				return name == "+"+strings.ToLower(command)
			}
			if !slices.ContainsFunc(u.Commands, granted) {
				t.Errorf("%s.lua calls %s, which the list does not grant", name, command)
			}
		}
	}
}
