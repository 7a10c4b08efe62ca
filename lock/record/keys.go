package record

import (
	"strconv"
	"strings"
	"sync"
)

// DefaultPrefix is the prefix of every companion key unless the application
// moved it (lock.Options.KeyPrefix).
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

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// Tag returns the text that hashes to key's slot and can stand between braces:
// key's own hash tag if it has a valid one; else key if it is not empty and has
// no closing brace; else the smallest decimal number whose slot is key's.
func Tag(key string) string {
	if tag, ok := hashTag(key); ok {
		return tag
	}
	if key != "" && !strings.Contains(key, "}") {
		return key
	}
	return slotNumber(Slot(key))
}

// Companion returns the name of key's companion of the given kind:
// prefix+kind+":{tag}" when the tag is the key itself, else with ":"+key behind
// it. Two locks never share a companion, and all of a lock's keys share a slot.
func Companion(prefix string, kind Kind, key string) string {
	tag := Tag(key)
	name := prefix + string(kind) + ":{" + tag + "}"
	if tag == key {
		return name
	}
	return name + ":" + key
}

// ParseCompanion is the inverse of [Companion]: it returns the kind and the
// lock's key, or false when name is no companion under prefix.
func ParseCompanion(prefix, name string) (kind Kind, key string, ok bool) {
	rest, found := strings.CutPrefix(name, prefix)
	if !found {
		return "", "", false
	}
	kindText, rest, found := strings.Cut(rest, ":{")
	if !found {
		return "", "", false
	}
	kind = Kind(kindText)
	switch kind {
	case KindHold, KindQueue, KindWaiter, KindUndo, KindExec, KindWake:
	default:
		return "", "", false
	}
	tag, behind, found := strings.Cut(rest, "}")
	if !found {
		return "", "", false
	}
	key = tag
	if behind != "" {
		key, found = strings.CutPrefix(behind, ":")
		if !found {
			return "", "", false
		}
	}
	if Companion(prefix, kind, key) != name {
		return "", "", false
	}
	return kind, key, true
}

// FenceKey returns the counter that fences the locks of key's hash slot: one
// small key per slot, without TTL.
func FenceKey(prefix, key string) string {
	return prefix + "fence:{" + slotNumber(Slot(key)) + "}"
}

// InstanceKey returns the heartbeat key of a process, which is also the name of
// the channel on which it is told of forced releases.
func InstanceKey(prefix, id string) string { return prefix + "instance:" + id }

// ParseInstanceKey is the inverse of [InstanceKey].
func ParseInstanceKey(prefix, name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, prefix+"instance:")
	return id, ok && id != ""
}

// Slot returns the Redis Cluster hash slot of key: CRC16 (XMODEM) of its hash
// tag, or of all of it, modulo 16384 (Redis Cluster specification, "Key
// distribution model").
func Slot(key string) int {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	return int(crc16(key)) % slots
}

// hashTag returns what stands between the first { and the first } after it, if
// that is not empty.
func hashTag(key string) (string, bool) {
	_, behind, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok := strings.Cut(behind, "}")
	return tag, ok && tag != ""
}

// slotNumbers maps each slot to the smallest decimal number that hashes to it.
var slotNumbers = sync.OnceValue(func() []string {
	table := make([]string, slots)
	var text []byte
	for n, missing := 0, slots; missing > 0; n++ {
		text = strconv.AppendInt(text[:0], int64(n), 10)
		if s := int(crc16(text)) % slots; table[s] == "" {
			table[s] = string(text)
			missing--
		}
	}
	return table
})

func slotNumber(slot int) string { return slotNumbers()[slot] }

// crcTable has the CRC of each byte.
var crcTable = sync.OnceValue(func() *[256]uint16 {
	var table [256]uint16
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return &table
})

// crc16 is CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected.
func crc16[T string | []byte](s T) uint16 {
	table := crcTable()
	var crc uint16
	for i := range len(s) {
		crc = crc<<8 ^ table[byte(crc>>8)^s[i]]
	}
	return crc
}
