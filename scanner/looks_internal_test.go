package scanner

import (
	"reflect"
	"testing"
	"time"

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
