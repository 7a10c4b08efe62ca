package scanner

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/locksteward/locksteward"
)

// A look that is as the last one shares it, and unpacks to what it was; one that
// differs in anything but the time is kept whole.
func TestBrief(t *testing.T) {
	t.Parallel()
	fresh := func() look {
		return look{
			key: "k", kind: &shape{node: "n", typ: "string"}, digest: "d", holder: &locksteward.Holder{Host: "h"},
			claim: &locksteward.Claim{ID: "c", Renewed: time.UnixMilli(5), Holding: []string{"a"}},
			at:    2000, acquired: 7, expireAt: 90, ttl: time.Second, idle: unknownIdle, size: 3, count: 1, fence: 4, waiters: 2,
		}
	}
	last := fresh()
	last.at, last.expireAt, last.ttl, last.idle, last.waiters = 1000, 80, 2*time.Second, time.Hour, 0
	last.instance = &locksteward.Instance{ID: "i"}
	same := fresh()
	b := briefly(&same, &last)
	if got := b.look(); !b.as || b.rest != &last || !reflect.DeepEqual(got, same) {
		t.Errorf("shared %t\n got %+v\nwant %+v", b.as, got, same)
	}
	for name, change := range map[string]func(*look){
		"kind":     func(l *look) { l.kind = &shape{node: "n", typ: "hash"} },
		"digest":   func(l *look) { l.digest = "e" },
		"holder":   func(l *look) { l.holder = &locksteward.Holder{Host: "i"} },
		"no one":   func(l *look) { l.holder = nil },
		"claim":    func(l *look) { l.claim.Renewals++ },
		"no claim": func(l *look) { l.claim = nil },
		"acquired": func(l *look) { l.acquired++ },
		"idle":     func(l *look) { l.idle = 0 },
		"size":     func(l *look) { l.size++ },
		"count":    func(l *look) { l.count++ },
		"fence":    func(l *look) { l.fence++ },
		"instance": func(l *look) { l.instance = &locksteward.Instance{} },
		"key":      func(l *look) { l.key = "other" },
	} {
		l := fresh()
		change(&l)
		b := briefly(&l, &last)
		if got := b.look(); b.as || !reflect.DeepEqual(got, l) {
			t.Errorf("%s: shared %t\n got %+v\nwant %+v", name, b.as, got, l)
		}
	}
	alone := fresh()
	if b := briefly(&alone, nil); b.as || !reflect.DeepEqual(b.look(), alone) {
		t.Errorf("the first look: shared %t, %+v", b.as, b.look())
	}
}

// Whatever field of a claim changes, it is another.
func TestEqualClaims(t *testing.T) {
	t.Parallel()
	if !equalClaims(&locksteward.Claim{}, &locksteward.Claim{}) || !equalClaims(nil, nil) || equalClaims(nil, &locksteward.Claim{}) {
		t.Error("equal is not equal")
	}
	for i := range reflect.TypeFor[locksteward.Claim]().NumField() {
		var c locksteward.Claim
		f := reflect.ValueOf(&c).Elem().Field(i)
		switch v := f.Addr().Interface().(type) {
		case *string:
			*v = "x"
		case *time.Time:
			*v = time.UnixMilli(1)
		case *[]string:
			*v = []string{"x"}
		case *bool:
			*v = true
		default:
			f.SetInt(1)
		}
		if equalClaims(&c, &locksteward.Claim{}) {
			t.Errorf("a change of %s is not seen", reflect.TypeFor[locksteward.Claim]().Field(i).Name)
		}
	}
}

// A lock that was handed out is read while later looks at it are taken in: nothing is
// written behind its pointers (which the race detector sees), and what is equal is kept
// once.
func TestLocksHandedOutAreLeftAlone(t *testing.T) {
	t.Parallel()
	claim := func(id string) *locksteward.Claim {
		return &locksteward.Claim{ID: strings.Clone(id), Session: strings.Clone("s"), Renewed: time.UnixMilli(5)}
	}
	table := newTable(locksteward.Target{})
	first := look{key: "k", kind: table.intern(shape{typ: "string"}), digest: "d", claim: claim("c"), at: 1000, expireAt: 90, idle: unknownIdle}
	now, _ := table.update(first)
	handed := now.lock(table.target)
	read := make(chan string)
	go func() { read <- handed.Claim.ID + handed.Claim.Session }()

	same := first
	same.at, same.claim = 2000, claim("c")
	b := briefly(&same, &now.look)
	now, _ = table.merged(b.look())
	if now.claim != handed.Claim {
		t.Error("the same claim is kept twice")
	}
	again := first
	again.at, again.claim = 3000, claim("c")
	if now, _ = table.update(again); now.claim != handed.Claim {
		t.Error("the same claim, read directly, is kept twice")
	}
	renewed := first
	renewed.at, renewed.claim = 4000, claim("c")
	renewed.claim.Renewals++
	now, _ = table.update(renewed)
	if now.claim == handed.Claim || now.claim.Renewals != 1 || handed.Claim.Renewals != 0 {
		t.Errorf("renewed: %+v, was handed out as %+v", now.claim, handed.Claim)
	}
	if unsafe.StringData(now.claim.ID) != unsafe.StringData(handed.Claim.ID) || unsafe.StringData(now.claim.Session) != unsafe.StringData(handed.Claim.Session) {
		t.Error("the names of a renewed claim are kept twice")
	}
	if got := <-read; got != "cs" {
		t.Errorf("handed out %q", got)
	}
}

// update takes one look at a lock into the table, as the watch does.
func (t *Table) update(l look) (now, ended *entry) {
	return t.apply(reading{key: l.key, lock: &l, at: l.at, began: time.Now()})
}

// merged takes one look at a lock into the table, as a sweep does.
func (t *Table) merged(l look) (now, ended *entry) {
	return t.apply(reading{key: l.key, lock: &l, at: l.at, began: time.Now(), merging: true})
}
