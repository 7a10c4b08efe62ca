package faults_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/locksteward/locksteward/internal/faults"
)

// fake is a test that notes what is done to it.
type fake struct {
	testing.TB
	attrs []string
	fatal string
}

func (f *fake) Helper()                   {}
func (f *fake) Attr(key, value string)    { f.attrs = append(f.attrs, key+"="+value) }
func (f *fake) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (f *fake) Fatalf(s string, a ...any) { panic(fmt.Sprintf(s, a...)) }

func run(rows ...int) (f *fake) {
	f = &fake{}
	defer func() {
		if r := recover(); r != nil {
			f.fatal = fmt.Sprint(r)
		}
	}()
	faults.Covers(f, rows...)
	return f
}

func TestCovers(t *testing.T) {
	t.Parallel()
	if f := run(14, 84); f.fatal != "" || !slices.Equal(f.attrs, []string{"fault=14", "fault=84"}) {
		t.Errorf("attributes %v, failed with %q", f.attrs, f.fatal)
	}
	for _, rows := range [][]int{nil, {0}, {85}, {-1}, {1, 99}} {
		if f := run(rows...); f.fatal == "" {
			t.Errorf("rows %v: no failure", rows)
		}
	}
}
