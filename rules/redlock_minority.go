package rules

import (
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
)

// redlockMinority reports locks of a Redlock that too few of its masters have.
type redlockMinority struct{}

var redlockMinorityDoc = Doc{
	Name:     "redlock/minority",
	Title:    "A Redlock lock lives on less than a majority of its masters",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Cause: locksteward.Text{
		EN: "A master restarted without its memory, was flushed, evicts, or somebody deleted the key there; the release did not reach all masters; or an acquire failed and could not take its votes back. While a holder works with such a lock, another can get the majority.",
		ZH: "某个主节点在丢失内存数据后重启、被清空、发生淘汰，或有人在该节点上删除了键；释放未到达所有主节点；或加锁失败且未能收回其投票。若持有者仍凭此锁工作，另一方可以取得多数。",
	},
	Remedy: locksteward.Text{
		EN: "Look whether the holder still works. If it does, what it writes to must check the fence, since others can take the lock. If it does not, the rest goes with its TTL, or can be released on the masters that have it. " +
			"Set MinUptime on all clients, noeviction and appendonly with appendfsync always on all masters.",
		ZH: "查看持有者是否仍在工作。若是，其写入的资源必须校验 fence，因为他人可以取得该锁。若否，剩余的键会随过期时间消失，也可在拥有它的主节点上释放。" +
			"在所有客户端设置 MinUptime，在所有主节点使用 noeviction 并开启 appendonly（appendfsync always）。",
	},
}

// Doc implements [Rule].
func (redlockMinority) Doc() Doc { return redlockMinorityDoc }

// Evaluate implements [Rule].
func (redlockMinority) Evaluate(in Input) Verdict {
	q := in.Quorum
	if q == nil {
		return in.notApplicable(because("the lock is none of a configured Redlock (redlock:), its token is shared, or it is judged on another of its masters"))
	}
	n := len(q.On) + len(q.Without) + len(q.Unknown)
	if len(q.On)+len(q.Unknown) >= q.Need {
		return in.clear(func() string {
			if len(q.On) >= q.Need {
				return fmt.Sprintf("%d of %d masters of %s have it", len(q.On), n, q.Name)
			}
			return fmt.Sprintf("%d of %d masters of %s have it, and of %s it is not known since", len(q.On), n, q.Name, strings.Join(q.Unknown, ", "))
		})
	}
	l := in.Lock
	return in.fires(locksteward.Finding{
		Summary: text("lock %s of Redlock %s lives on %d of %d masters; a holder needs %d",
			"Redlock %[2]s 的锁 %[1]s 仅存在于 %[4]d 个主节点中的 %[3]d 个；持有者需要 %[5]d 个",
			locksteward.MarkKey(l.Key), locksteward.DisplayKey(q.Name), len(q.On), n, q.Need),
		Evidence: join(
			phrase("masters that have it: %s", "拥有它的主节点：%s", names(q.On)),
			phrase("masters that do not, by a complete sweep during which another had it: %s",
				"没有它的主节点（据一次完整的扫描，期间另一主节点拥有它）：%s", names(q.Without)),
			unknownLine(q),
			holderLine(l.Holder),
			ttlLine(l),
		),
		CounterEvidence: join(aliveLine(l, in.Now)),
	})
}

func unknownLine(q *Quorum) locksteward.Text {
	if len(q.Unknown) == 0 {
		return locksteward.Text{}
	}
	return phrase("masters that could not be read since: %s", "此后无法读取的主节点：%s", names(q.Unknown))
}
