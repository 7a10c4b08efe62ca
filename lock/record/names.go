package record

import "strings"

// Names are all names that belong to one lock.
type Names struct {
	Lock   string // the lock itself
	Hold   string // [KindHold]
	Fence  string // [FenceKey]
	Queue  string // [KindQueue]
	Waiter string // [KindWaiter]
	Wake   string // [KindWake], of which the channels of the waiting processes are made
}

// NamesOf returns the names of the lock key as [Companion] and [FenceKey] give
// them, in one allocation.
func NamesOf(prefix, key string) Names {
	tag := Tag(key)
	behind := 0 // length of ":key" where the tag is not the key
	if tag != key {
		behind = 1 + len(key)
	}
	number := slotNumber(Slot(key))
	kinds := [...]Kind{KindHold, KindQueue, KindWaiter, KindWake}
	size := len(prefix) + len("fence:{}") + len(number)
	for _, k := range kinds {
		size += len(prefix) + len(k) + len(":{}") + len(tag) + behind
	}
	var b strings.Builder
	b.Grow(size)
	var ends [len(kinds)]int
	for i, k := range kinds {
		b.WriteString(prefix)
		b.WriteString(string(k))
		b.WriteString(":{")
		b.WriteString(tag)
		b.WriteByte('}')
		if behind > 0 {
			b.WriteByte(':')
			b.WriteString(key)
		}
		ends[i] = b.Len()
	}
	b.WriteString(prefix)
	b.WriteString("fence:{")
	b.WriteString(number)
	b.WriteByte('}')
	all := b.String()
	return Names{
		Lock:   key,
		Hold:   all[:ends[0]],
		Queue:  all[ends[0]:ends[1]],
		Waiter: all[ends[1]:ends[2]],
		Wake:   all[ends[2]:ends[3]],
		Fence:  all[ends[3]:],
	}
}
