package scanner

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/locksteward/locksteward"
)

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
	first := lockState{key: "k", traits: table.traitSet.of(traits{typ: "string"}), digest: "d", claim: claim("c"), at: 1000, expireAt: 90, idle: -1}
	now, _ := table.update(first)
	handed := now.lock(table.target)
	read := make(chan string)
	go func() { read <- handed.Claim.ID + handed.Claim.Session }()

	same := first
	same.at, same.claim = 2000, claim("c")
	now, _ = table.merged(same)
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
func (t *Table) update(l lockState) (now, ended *entry) {
	return t.decide(&batch{began: time.Now()}, &reading{key: l.key, lock: &l, at: l.at})
}

// merged takes one look at a lock into the table, as a sweep does.
func (t *Table) merged(l lockState) (now, ended *entry) {
	return t.decide(&batch{began: time.Now(), sweep: &sweepEvidence{}}, &reading{key: l.key, lock: &l, at: l.at})
}
