package rules

import (
	"cmp"
	"maps"
	"slices"

	"github.com/locksteward/locksteward"
)

// maxExamples is how many keys a finding about a class names.
const maxExamples = 5

// sharedToken reports classes whose locks any client could release.
type sharedToken struct{}

var sharedTokenDoc = Doc{
	Name:     "holder/shared-token",
	Title:    "Locks of a class have a constant or shared token",
	Scope:    ScopeClass,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause: locksteward.Text{
		EN: "The lock's value is a constant (1, true, locked) or names a host or process, so it does not tell one acquisition from the next. " +
			"A client that comes back from a pause releases the lock of whoever holds it then.",
		ZH: "锁的值是常量（1、true、locked）或仅标识主机、进程，无法区分不同的加锁。客户端暂停后恢复时，会释放此时他人持有的锁。",
	},
	Remedy: locksteward.Text{
		EN: "Write a fresh random token per acquisition (SET key token NX PX ms, 16 random bytes or more) and release with a script that compares it before DEL. " +
			"Until then these locks cannot be told apart, so a forced release of one needs a separate confirmation.",
		ZH: "每次加锁写入新的随机 token（SET key token NX PX ms，至少 16 个随机字节），释放时用脚本先比较再 DEL。" +
			"在此之前这些锁无法相互区分，强制释放它们需要单独确认。",
	},
}

// Doc implements [Rule].
func (sharedToken) Doc() Doc { return sharedTokenDoc }

// Evaluate implements [Rule].
func (sharedToken) Evaluate(in Input) Verdict {
	g := in.Group
	if g == nil || g.Shared == 0 {
		return in.clear(because("the token is not known to be constant or shared"))
	}
	return in.fires(locksteward.Finding{
		Library: g.Library,
		Summary: text("class %s: %d of %d locks have a constant or shared token, so any client can release them",
			"class %s：%d/%d 把锁使用常量或共享 token，任何客户端都能释放它们", locksteward.DisplayKey(in.Class.Name), g.Shared, g.Locks),
		Evidence: []locksteward.Text{g.kindsLine(), g.examplesLine()},
		CounterEvidence: []locksteward.Text{{
			EN: "how its clients release cannot be seen from here: one that never deletes another's lock does no harm",
			ZH: "从外部无法看到其客户端如何释放锁：从不删除他人锁的客户端不会造成危害",
		}},
	})
}

// Group is the locks of one class on one target, and what is known of those
// whose token is constant or shared.
type Group struct {
	Locks, Shared int
	Kinds         map[string]int // of token, how many
	Library       string         // "" if they differ
	Examples      []string       // the first keys
}

// add takes in a lock; locks come in the order of (DB, Key).
func (g *Group) add(l *locksteward.Lock) {
	g.Locks++
	if !l.SharedToken {
		return
	}
	if g.Shared++; g.Shared == 1 {
		g.Kinds, g.Library = map[string]int{}, l.Library
	}
	if g.Library != l.Library {
		g.Library = ""
	}
	g.Kinds[cmp.Or(l.TokenKind, unknownKind)]++
	if len(g.Examples) < maxExamples {
		g.Examples = append(g.Examples, l.Key)
	}
}

// unknownKind is the kind of a shared token of which nothing more is known.
const unknownKind = "a constant or shared value"

// kindsZH are the kinds of shared tokens that libraries tell in English.
var kindsZH = map[string]string{
	unknownKind:                     "常量或共享的值",
	"an empty value":                "空值",
	"a one-digit number":            "一位数字",
	"a short number":                "较短的数字",
	"a constant word":               "常量单词",
	"one character repeated":        "重复的单个字符",
	"the zero UUID":                 "全零的 UUID",
	"a network address":             "网络地址",
	"a host name with a process id": "主机名与进程号",
	"a short word":                  "较短的单词",
	"a host, worker or thread name": "主机、worker 或线程的名称",
}

// kindsLine counts the kinds of token, most frequent first.
func (g *Group) kindsLine() locksteward.Text {
	kinds := slices.SortedFunc(maps.Keys(g.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.Kinds[b], g.Kinds[a]), cmp.Compare(a, b))
	})
	var parts []locksteward.Text
	for _, k := range kinds {
		kind := locksteward.Text{EN: k, ZH: cmp.Or(kindsZH[k], k)}
		parts = append(parts, phrase("%s (%s)", "%s（%s）", kind, counted(g.Kinds[k], "lock", "locks", "把锁")))
	}
	return phrase("token: %s", "token 类型：%s", list(parts))
}

// examplesLine names the first few keys in their order.
func (g *Group) examplesLine() locksteward.Text {
	keys := make([]string, 0, len(g.Examples))
	for _, key := range g.Examples {
		keys = append(keys, locksteward.MarkKey(key))
	}
	return locksLine(keys, g.Shared)
}
