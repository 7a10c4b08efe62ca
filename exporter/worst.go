package exporter

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
)

// How the name of a lock is shown in the label "key" (Config.KeyNames).
const (
	KeyNamesFull = "full"
	KeyNamesHash = "hash"
)

const (
	// maxTopLocks bounds Config.TopLocks: each lock is one series.
	maxTopLocks = 100
	// maxKeyLabel bounds the label "key" in bytes.
	maxKeyLabel = 128
)

// worst keeps the locks of a target that are held longest: the only ones whose
// names a scrape may show, and only if that is asked for.
type worst struct {
	most  int // 0: none
	names string
	list  []worstLock // the oldest first
	old   []worstLock // of the sweep before, while one is taken in
}

// worstLock is one of them.
type worstLock struct {
	id    lockHash
	age   float32
	class string
	key   string // as shown
}

// begin starts anew with a sweep, which looks at every lock.
func (w *worst) begin() { w.old, w.list = w.list, nil }

// carry keeps locks of the list before that are still known and that the sweep did
// not reach.
func (w *worst) carry(known *memory, pass uint16) {
	for _, l := range w.old {
		if s, ok, _ := known.get(l.id); ok && s.pass != pass {
			w.insert(l)
		}
	}
	w.old = nil
}

// offer takes in a look at a lock.
func (w *worst) offer(l *locksteward.Lock, id lockHash, now seenLock) {
	if w.most == 0 {
		return
	}
	if len(w.list) > 0 && w.old == nil {
		w.remove(id) // an age of before; within a sweep each lock comes once
	}
	if !now.facts.has(hasAge) || len(w.list) == w.most && now.age <= w.list[w.most-1].age {
		return
	}
	w.insert(worstLock{id: id, age: now.age, class: l.Class, key: keyLabel(w.names, l.DB, l.Key)})
}

func (w *worst) insert(l worstLock) {
	at, _ := slices.BinarySearchFunc(w.list, l, func(a, b worstLock) int { return cmp.Compare(b.age, a.age) })
	w.list = slices.Insert(w.list, at, l)
	w.list = w.list[:min(len(w.list), w.most)]
}

func (w *worst) remove(id lockHash) {
	w.list = slices.DeleteFunc(w.list, func(l worstLock) bool { return l.id == id })
}

// keyLabel is a key's name as a label: one line of at most maxKeyLabel bytes of
// text. A name that is cut carries a part of its digest, so that two are two.
func keyLabel(names string, db int, key string) string {
	sum := sha256.Sum256([]byte(key))
	digest := hex.EncodeToString(sum[:])
	where := ""
	if db != 0 {
		where = fmt.Sprintf("db%d:", db)
	}
	if names == KeyNamesHash {
		return where + "sha256:" + digest[:16]
	}
	shown := locksteward.DisplayKey(key[:min(len(key), 2*maxKeyLabel)])
	if len(key) <= 2*maxKeyLabel && len(where)+len(shown) <= maxKeyLabel {
		return where + shown
	}
	const mark = "…"
	tail := mark + digest[:12]
	cut := maxKeyLabel - len(where) - len(tail)
	for cut > 0 && !utf8.RuneStart(shown[cut]) {
		cut--
	}
	return where + shown[:cut] + tail
}

// emitWorst gives the locks of all targets that are held longest.
func (e *Exporter) emitWorst(s *building) {
	if e.cfg.TopLocks == 0 {
		return
	}
	type named struct {
		target string
		worstLock
	}
	var all []named
	for _, name := range e.targetNames() {
		if t := e.targets[name]; t.gauges != nil {
			for _, l := range t.worst.list {
				all = append(all, named{name, l})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b named) int { return cmp.Compare(b.age, a.age) })
	shown := map[[2]string]bool{} // two names may look alike: the older lock is shown
	for _, l := range all {
		id := [2]string{l.target, l.key}
		if shown[id] {
			continue
		}
		shown[id] = true
		s.series(lockAge, toMillis(l.age), l.target, e.shown(l.class), l.key)
		if len(shown) == e.cfg.TopLocks {
			return
		}
	}
}
