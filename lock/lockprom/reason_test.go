package lockprom

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/redlock"
)

// codeReasons is the reason of every code.
var codeReasons = map[lock.Code]reason{
	lock.CodeWrongType:   reasonWrongType,
	lock.CodeFormat:      reasonServer,
	lock.CodeFence:       reasonServer,
	lock.CodeOOM:         reasonOOM,
	lock.CodeDenied:      reasonDenied,
	lock.CodeMoved:       reasonUnavailable,
	lock.CodeUnavailable: reasonUnavailable,
	lock.CodeOther:       reasonServer,
}

// sentinelReasons is the reason of every sentinel, by its name.
var sentinelReasons = map[string]struct {
	err  error
	want reason
}{
	"ErrHeld":    {lock.ErrHeld, reasonHeld},
	"ErrUnknown": {lock.ErrUnknown, reasonUnknown},
	"ErrTooLate": {lock.ErrTooLate, reasonTooLate},
	"ErrClosed":  {lock.ErrClosed, reasonClosed},
	// No failed acquire or renewal is one of these.
	"ErrLost":     {lock.ErrLost, reasonOther},
	"ErrMaxHold":  {lock.ErrMaxHold, reasonOther},
	"ErrReleased": {lock.ErrReleased, reasonOther},
	"ErrInvalid":  {lock.ErrInvalid, reasonOther},
}

func TestReasonOfEverySentinelAndCode(t *testing.T) {
	t.Parallel()
	check := func(name string, err error, want reason) {
		wrapped := map[string]error{
			"as it is": err,
			"wrapped":  fmt.Errorf("acquire lock %q: %w", "k", err),
			"joined":   errors.Join(errors.New("work failed"), err),
		}
		for how, err := range wrapped {
			if got := reasonOf(err); got != want {
				t.Errorf("%s %s: %s, want %s", name, how, got, want)
			}
		}
	}
	for name, c := range sentinelReasons {
		check(name, c.err, c.want)
	}
	for code, want := range codeReasons {
		check(string(code), &lock.ServerError{Op: "acquire", Key: "k", Code: code, Err: errors.New(string(code) + " words")}, want)
	}
	check("a code of a later version", &lock.ServerError{Code: "NEW", Err: errors.New("NEW")}, reasonServer)

	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	check("dial", refused, reasonUnreachable)
	check("read", &net.OpError{Op: "read", Err: errors.New("reset")}, reasonOther)
	check("pool timeout", redis.ErrPoolTimeout, reasonPool)
	check("pool exhausted", redis.ErrPoolExhausted, reasonPool)
	check("canceled", context.Canceled, reasonCanceled)
	check("deadline", context.DeadlineExceeded, reasonDeadline)
	check("a cause of its own", errors.New("shutting down"), reasonOther)

	// What several apply to.
	check("no reply in time", fmt.Errorf("%w: %w", lock.ErrUnknown, context.DeadlineExceeded), reasonUnknown)
	check("an error reply after a lost one", fmt.Errorf("%w: %w", lock.ErrUnknown, &lock.ServerError{Code: lock.CodeOOM, Err: redis.ErrClosed}), reasonUnknown)
	check("no reply, and closed", fmt.Errorf("%w: %w", fmt.Errorf("%w: %w", lock.ErrUnknown, context.Canceled), lock.ErrClosed), reasonClosed)
	check("not held, did not wait", &lock.HeldError{Key: "k"}, reasonHeld)
	check("held to the deadline", &lock.HeldError{Key: "k", Err: context.DeadlineExceeded}, reasonHeld)
	check("held, canceled", &lock.HeldError{Key: "k", Err: context.Canceled}, reasonCanceled)
	check("held, closed", &lock.HeldError{Key: "k", Err: lock.ErrClosed}, reasonClosed)
	check("held, with a cause of its own", &lock.HeldError{Key: "k", Err: errors.New("shutting down")}, reasonHeld)
	if got := reasonOf(nil); got != reasonOther {
		t.Errorf("no error at all: %s", got)
	}
}

func TestLossOfEveryReason(t *testing.T) {
	t.Parallel()
	for _, name := range constants(t, "Reason") {
		err := fmt.Errorf("release lock: %w", &lock.LostError{Key: "k", Reason: lock.Reason(name)})
		if got := lossNames[lossOf(err)]; got != name {
			t.Errorf("reason %q of package lock is shown as %q: add it to lossNames", name, got)
		}
	}
	for _, err := range []error{nil, errors.New("x"), &lock.LostError{Reason: "new"}} {
		if got := lossNames[lossOf(err)]; got != "other" {
			t.Errorf("%v is shown as %q, want other", err, got)
		}
	}
}

// TestTablesAreWhole compares the tables above with the source of package lock,
// so that what is added there cannot be forgotten here.
func TestTablesAreWhole(t *testing.T) {
	t.Parallel()
	for _, code := range constants(t, "Code") {
		if _, ok := codeReasons[lock.Code(code)]; !ok {
			t.Errorf("code %q of package lock has no reason here", code)
		}
	}
	sentinels := 0
	for _, file := range lockSources(t) {
		for _, decl := range file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if !strings.HasPrefix(name.Name, "Err") {
						continue
					}
					sentinels++
					if _, ok := sentinelReasons[name.Name]; !ok {
						t.Errorf("lock.%s has no reason here", name.Name)
					}
				}
			}
		}
	}
	if sentinels == 0 {
		t.Error("no sentinels found in package lock")
	}
}

// TestEveryKindIsCounted feeds one event of each kind of package lock.
func TestEveryKindIsCounted(t *testing.T) {
	t.Parallel()
	for _, kind := range constants(t, "EventKind") {
		b := setup(t, Options{Classes: []string{"c"}})
		b.feed(lock.Event{Kind: lock.EventAcquired, Class: "c", ID: "1"})
		before := samples(t, b.reg)
		b.feed(lock.Event{Kind: lock.EventKind(kind), Class: "c", ID: "1"})
		changed := false
		for name, v := range samples(t, b.reg) {
			changed = changed || v != before[name]
		}
		if !changed {
			t.Errorf("event kind %q of package lock changes no metric", kind)
		}
	}
	b := setup(t, Options{})
	b.feed(lock.Event{Kind: "new", Class: "c"})
	for name, v := range samples(t, b.reg) {
		if v != 0 || strings.Contains(name, `class="c"`) {
			t.Errorf("an unknown kind made %s = %g", name, v)
		}
	}
}

// lockSources parses package lock.
func lockSources(t *testing.T) []*ast.File {
	t.Helper()
	names, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, raw, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// constants returns the values of the constants of a string type of package lock.
func constants(t *testing.T, typ string) []string {
	t.Helper()
	var values []string
	for _, file := range lockSources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					s, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, s)
				}
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Fatalf("no constant of type %s found in package lock", typ)
	}
	return slices.Compact(values)
}

// Too few votes are a reason of their own, whatever the nodes said.
func TestQuorumReason(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{lock.ErrUnknown, context.DeadlineExceeded, &lock.ServerError{Code: lock.CodeOOM}} {
		err := fmt.Errorf("acquire: %w", &redlock.QuorumError{Op: "acquire", Need: 2, Got: 1, Nodes: []redlock.NodeError{{Err: cause}}})
		if got := reasonOf(err); got != reasonQuorum {
			t.Errorf("%v is %s", err, got)
		}
	}
}
