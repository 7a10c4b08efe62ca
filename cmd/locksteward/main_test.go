package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/locksteward/locksteward/internal/demo/lockuser"
	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// The scripts run the real program. `holder URL KEY TTL EXPECT` is a process
// that takes a lock of ours and keeps it until it is killed, `churn` takes many for a
// moment each.
func TestMain(m *testing.M) {
	testscript.Main(testredis.Settled{M: m, SideBySide: 8}, map[string]func(){
		"locksteward": main,
		"holder":      holderMain,
		"churn":       churnMain,
	})
}

func holderMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ttl, err := time.ParseDuration(os.Args[3])
	if err == nil {
		var expect time.Duration
		if expect, err = time.ParseDuration(os.Args[4]); err == nil {
			err = lockuser.Hold(ctx, os.Args[1], os.Args[2], lock.Lease{TTL: ttl, Expect: expect, Purpose: "a test"})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setupScript,
		Condition: func(cond string) (bool, error) {
			if cond == "redis" {
				return testredis.Available() && !testing.Short(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"redis":    redisCmd,
			"freeport": freePortCmd,
			"await":    awaitCmd,
			"jq":       jsonCmd,
			"setenv":   setEnvCmd,
			"exits":    exitsCmd,
			"scan":     scanCmd,
			"signin":   signInCmd,
			"hook":     newHooks().command,
			"certs":    newAuthorities().command,
			"block":    blockCmd,
			"page":     pageCmd,
		},
	})
}

func setupScript(env *testscript.Env) error {
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("NO_COLOR", "1")
	// Under the race detector a program sleeps a second before it ends.
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	shell, err := filepath.Abs("testdata/pages.sh")
	env.Setenv("BASH_ENV", shell)
	return err
}

// redisCmd is `redis start NAME [CONFIG LINE]...`, which sets $NAME to the URL of
// a fresh server, `redis until NAME PATTERN`, which waits for a key, and
// `redis NAME COMMAND [ARG]...`, which runs a command there.
// Arguments go through Go's unquoting, so that "a\nb" is a name with a newline.
func redisCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: redis start NAME [LINE]... | redis NAME COMMAND [ARG]...")
	}
	if args[0] == "start" {
		server, err := redisproc.Start(context.Background(), redisproc.Options{Config: args[2:]})
		ts.Check(err)
		ts.Defer(func() { ts.Check(server.Close()) })
		ts.Setenv(args[1], "redis://"+server.Addr())
		return
	}
	if args[0] == "until" {
		client := dial(ts, args[1])
		defer client.Close()
		for deadline := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
			if keys, err := client.Keys(context.Background(), args[2]).Result(); err == nil && len(keys) > 0 {
				return
			}
			if time.Now().After(deadline) {
				ts.Fatalf("no key %q within 30s", args[2])
			}
		}
	}
	client := dial(ts, args[0])
	defer client.Close()
	var cmd []any
	for _, a := range args[1:] {
		if text, err := strconv.Unquote(`"` + a + `"`); err == nil {
			a = text
		}
		cmd = append(cmd, a)
	}
	reply, err := client.Do(context.Background(), cmd...).Result()
	if err != nil && err != redis.Nil {
		ts.Fatalf("%v: %v", args, err)
	}
	_, _ = fmt.Fprintln(ts.Stdout(), reply)
}

func dial(ts *testscript.TestScript, name string) *redis.Client {
	options, err := redis.ParseURL(ts.Getenv(name))
	ts.Check(err)
	return redis.NewClient(options)
}

// scanCmd is `scan until URL FILE PATH WANT`: it scans again and again until the
// JSON has WANT at PATH, and leaves that JSON in FILE.
func scanCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 || args[0] != "until" {
		ts.Fatalf("usage: scan until URL FILE PATH WANT")
	}
	var raw bytes.Buffer
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		raw.Reset()
		cmd := exec.Command("locksteward", "scan", args[1], "--output", "json")
		cmd.Stdout = &raw
		ts.Check(cmd.Run())
		var v any
		ts.Check(json.Unmarshal(raw.Bytes(), &v))
		if got, ok := at(v, args[3]); ok && fmt.Sprint(got) == args[4] {
			ts.Check(os.WriteFile(ts.MkAbs(args[2]), raw.Bytes(), 0o600))
			return
		}
	}
	ts.Fatalf("%s is not %s within 30s; last scan: %s", args[3], args[4], raw.String())
}

// freePortCmd is `freeport NAME`, which sets $NAME to a port that is free, and that nothing else takes before the
// script's own programs do.
func freePortCmd(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		port, release, err := redisproc.ReservePort()
		ts.Check(err)
		ts.Defer(func() { ts.Check(release()) })
		ts.Setenv(name, strconv.Itoa(port))
	}
}

// awaitCmd is `await URL [TEXT]`: until the URL answers 200 with TEXT in it, or
// with `!` without it; its last body is the output. `await file NAME TEXT` waits
// for text in a file.
func awaitCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg && len(args) < 2 {
		ts.Fatalf("usage: await URL [TEXT] | await file NAME TEXT | ! await URL TEXT")
	}
	look := func() (string, bool) { return fetch(args[0]) }
	want := args[1:]
	if args[0] == "file" {
		want = args[2:]
		look = func() (string, bool) {
			raw, err := os.ReadFile(ts.MkAbs(args[1]))
			return string(raw), err == nil
		}
	}
	var body string
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		var ok bool
		if body, ok = look(); ok && (len(want) == 0 || strings.Contains(body, want[0]) != neg) {
			_, _ = io.WriteString(ts.Stdout(), body)
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	ts.Fatalf("await %v: not within 30s; last answer: %s", args, body)
}

func fetch(address string) (string, bool) {
	resp, err := http.Get(address) //nolint:gosec,noctx // a loopback URL from a script
	if err != nil {
		return err.Error(), false
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return string(raw), err == nil && resp.StatusCode == http.StatusOK
}

// signInCmd is `signin URL NAME FILE`: a browser signs in with the token in a file.
func signInCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: signin URL NAME FILE")
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.PostForm(args[0]+"/sign-in", url.Values{"name": {args[1]}, "password": {strings.TrimSpace(ts.ReadFile(args[2]))}})
	ts.Check(err)
	ts.Check(resp.Body.Close())
	if resp.StatusCode != http.StatusSeeOther {
		ts.Fatalf("sign-in: status %d", resp.StatusCode)
	}
}

// jsonCmd is `jq FILE PATH [WANT]`: the value at a path such as locks.0.key of a
// JSON file equals WANT. "findings[rule=ttl/none].status" finds in a list, and
// "len" counts.
func jsonCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: jq FILE PATH [WANT]")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	got, ok := at(v, args[1])
	text := fmt.Sprint(got)
	if raw, err := json.Marshal(got); err == nil && !isText(got) {
		text = string(raw)
	}
	if len(args) == 2 {
		if ok == neg {
			ts.Fatalf("%s: present = %v", args[1], ok)
		}
		_, _ = io.WriteString(ts.Stdout(), text)
		return
	}
	want := args[2]
	if unquoted, err := strconv.Unquote(`"` + want + `"`); err == nil {
		want = unquoted
	}
	if (text == want) == neg {
		ts.Fatalf("%s = %q, want %q (negated: %v)", args[1], text, want, neg)
	}
}

func isText(v any) bool { _, ok := v.(string); return ok }

func at(v any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		name, filter, filtered := strings.Cut(step, "[")
		if name != "" {
			switch x := v.(type) {
			case map[string]any:
				next, ok := x[name]
				if !ok {
					return nil, false
				}
				v = next
			case []any:
				if name == "len" {
					v = len(x)
					continue
				}
				i, err := strconv.Atoi(name)
				if err != nil || i >= len(x) {
					return nil, false
				}
				v = x[i]
			default:
				return nil, false
			}
		}
		if filtered {
			list, ok := v.([]any)
			if !ok {
				return nil, false
			}
			if v, ok = pick(list, strings.TrimSuffix(filter, "]")); !ok {
				return nil, false
			}
		}
	}
	return v, true
}

// pick finds the element for which all of "name=value,name=value" hold.
func pick(list []any, filter string) (any, bool) {
	for _, item := range list {
		m, ok := item.(map[string]any)
		for cond := range strings.SplitSeq(filter, ",") {
			name, want, _ := strings.Cut(cond, "=")
			ok = ok && fmt.Sprint(m[name]) == want
		}
		if ok {
			return item, true
		}
	}
	return nil, false
}

// setEnvCmd is `setenv NAME FILE`: $NAME is the file's content, trimmed.
func setEnvCmd(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// exitsCmd is `exits CODE PROGRAM [ARG]...`.
func exitsCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG]...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%v: exit code %d, want %s", args[1:], code, args[0])
	}
}
