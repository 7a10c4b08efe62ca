package record

import (
	"strings"

	"github.com/locksteward/locksteward/lock/internal/hashslot"
)

// DefaultPrefix is the prefix of every companion key unless the application moved it (lock.Options.KeyPrefix).
const DefaultPrefix = "locksteward:"

// Kind is a kind of companion key of a lock.
type Kind string

// The companions of a lock K; all live in K's hash slot.
const (
	KindHold   Kind = "hold"   // string: metadata of the hold
	KindQueue  Kind = "queue"  // zset: ids of the waiters in order of arrival
	KindWaiter Kind = "waiter" // hash: who waits, and what a release needs to hand the lock over
	KindUndo   Kind = "undo"   // a force-released lock of another library, while undo is possible
	KindExec   Kind = "exec"   // what a force-release did
	KindWake   Kind = "wake"   // prefix of the shard channels of the processes that wait
)

// Tag returns the text that hashes to key's slot and can stand between braces: key's own hash tag if it has a valid
// one; else key if it is not empty and has no closing brace; else the smallest decimal number whose slot is key's.
func Tag(key string) string {
	if tag, ok := hashslot.Tag(key); ok {
		return tag
	}
	if key != "" && !strings.Contains(key, "}") {
		return key
	}
	return slotNumber(key)
}

// Names are the companions of one lock that the library uses.
type Names struct {
	Hold, Queue, Waiter, Wake string // as [Companion] gives them
	Fence                     string // [FenceKey]
}

// NamesOf returns the names of the lock key, in one allocation.
func NamesOf(prefix, key string) Names {
	tag, number := Tag(key), slotNumber(key)
	size := len(tag)
	if tag != key {
		size += len(":") + len(key)
	}
	var b strings.Builder
	b.Grow(5*(len(prefix)+len(":{}")) + len("holdqueuewaiterwakefence") + 4*size + len(number))
	companion := func(kind Kind) string {
		from := b.Len()
		writeCompanion(&b, prefix, kind, tag, key)
		return b.String()[from:]
	}
	n := Names{Hold: companion(KindHold), Queue: companion(KindQueue), Waiter: companion(KindWaiter), Wake: companion(KindWake)}
	from := b.Len()
	writeCompanion(&b, prefix, "fence", number, number)
	n.Fence = b.String()[from:]
	return n
}

// Companion returns the name of key's companion of the given kind: prefix+kind+":{tag}" when the tag is the key
// itself, else with ":"+key behind it. Two locks never share a companion, and all of a lock's keys share a slot.
func Companion(prefix string, kind Kind, key string) string {
	var b strings.Builder
	writeCompanion(&b, prefix, kind, Tag(key), key)
	return b.String()
}

func writeCompanion(b *strings.Builder, prefix string, kind Kind, tag, key string) {
	b.WriteString(prefix)
	b.WriteString(string(kind))
	b.WriteString(":{")
	b.WriteString(tag)
	b.WriteByte('}')
	if tag != key {
		b.WriteByte(':')
		b.WriteString(key)
	}
}

// ParseCompanion is the inverse of [Companion]: it returns the kind and the lock's key, or false when name is no
// companion under prefix.
func ParseCompanion(prefix, name string) (kind Kind, key string, ok bool) {
	rest, ours := strings.CutPrefix(name, prefix)
	text, rest, _ := strings.Cut(rest, ":{")
	switch kind = Kind(text); kind {
	case KindHold, KindQueue, KindWaiter, KindUndo, KindExec, KindWake:
	default:
		return "", "", false
	}
	key, behind, _ := strings.Cut(rest, "}")
	if behind != "" {
		key = behind[1:]
	}
	if !ours || Companion(prefix, kind, key) != name {
		return "", "", false
	}
	return kind, key, true
}

// FenceKey returns the counter that fences the locks of key's hash slot: one small key per slot, without TTL.
func FenceKey(prefix, key string) string { return prefix + "fence:{" + slotNumber(key) + "}" }

// InstanceKey returns the heartbeat key of a process, which is also the name of the channel on which it is notified
// of hand-offs and forced releases.
func InstanceKey(prefix, id string) string { return prefix + "instance:" + id }

// ParseInstanceKey is the inverse of [InstanceKey].
func ParseInstanceKey(prefix, name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, prefix+"instance:")
	return id, ok && id != ""
}

// Slot returns the Redis Cluster hash slot of key.
func Slot(key string) int { return hashslot.Of(key) }

func slotNumber(key string) string { return hashslot.Number(hashslot.Of(key)) }
