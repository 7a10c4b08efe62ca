package hashslot_test

import (
	"testing"

	"github.com/locksteward/locksteward/lock/internal/hashslot"
)

// The check value of CRC-16/XMODEM, and slots as a server gives them
// (record.TestSlotIsTheServers asks one).
func TestOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{
		"123456789": 0x31C3, "lock:order:42": 1507, "{123456789}:a": 0x31C3, "a{123456789}b{c}": 0x31C3, "": 0,
	} {
		if got := hashslot.Of(key); got != want%hashslot.Count {
			t.Errorf("slot of %q: %d, want %d", key, got, want%hashslot.Count)
		}
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"{a}": "a", "x{a}y{b}": "a", "{{a}}": "{a", "a": "", "{}a{b}": "", "{a": "", "}a{": ""} {
		if tag, ok := hashslot.Tag(key); ok != (want != "") || ok && tag != want {
			t.Errorf("tag of %q: %q, %t, want %q", key, tag, ok, want)
		}
	}
}

// Each slot has a number of its own, and no smaller one is of that slot.
func TestNumber(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for slot := range hashslot.Count {
		number := hashslot.Number(slot)
		if hashslot.Of(number) != slot || seen[number] {
			t.Fatalf("slot %d: number %s", slot, number)
		}
		seen[number] = true
	}
	if got := hashslot.Number(1507); got != "2245" {
		t.Errorf("slot 1507: number %s", got)
	}
}
