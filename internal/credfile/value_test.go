package credfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
)

var errShort = errors.New("must have six letters")

func six(text []byte) (string, error) {
	if len(text) != 6 {
		return "", errShort
	}
	return string(text), nil
}

// TestSwapOfAMountedSecret: what the kubelet does is one change, used by the next
// look, and what cannot be used leaves the value before it.
func TestSwapOfAMountedSecret(t *testing.T) {
	t.Parallel()
	of := func(text string) map[string]string { return map[string]string{"key": text} }
	m := testcert.Mount(t, of("oneone"))
	v, err := credfile.OpenValue(m.Path("key"), six)
	if err != nil {
		t.Fatal(err)
	}
	m.Swap(t, of("twotwo"))
	if s := v.State(true); s.Refused != nil || s.Generation != 2 || v.Get() != "twotwo" {
		t.Errorf("%q, %+v", v.Get(), s)
	}
	for name, text := range map[string]string{"empty": "", "blank": " \n", "half": "thr"} {
		m.Swap(t, of(text))
		if s := v.State(true); s.Refused == nil || s.Generation != 2 || v.Get() != "twotwo" {
			t.Errorf("%s: %q, %+v", name, v.Get(), s)
		}
	}
	if err := os.Remove(m.Path("..data")); err != nil {
		t.Fatal(err)
	}
	if s := v.State(true); s.Refused == nil || !strings.Contains(s.Refused.Error(), "no such file") || v.Get() != "twotwo" {
		t.Errorf("gone: %q, %+v", v.Get(), s)
	}
	m.Swap(t, of("threee"))
	if s := v.State(true); s.Refused != nil || s.Generation != 3 || v.Get() != "threee" {
		t.Errorf("%q, %+v", v.Get(), s)
	}
	if _, err := credfile.OpenValue(testcert.Mount(t, of("thr")).Path("key"), six); !errors.Is(err, errShort) {
		t.Errorf("at first: %v", err)
	}
	if _, err := credfile.OpenValue(testcert.Mount(t, of("\n")).Path("key"), six); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("empty at first: %v", err)
	}
}

// TestFileThatIsStillWritten: a password that is written in place, in two parts, is
// used when it is whole, and half of it never is. It is not reported that it is refused:
// nothing is wrong.
func TestFileThatIsStillWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pw")
		testcert.Put(t, path, []byte("first-password\n"))
		s, err := credfile.OpenSecret(path)
		if err != nil {
			t.Fatal(err)
		}
		write := func(flags int, text string) {
			t.Helper()
			f, err := os.OpenFile(path, os.O_WRONLY|flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		look := func(want string) {
			t.Helper()
			if st := s.State(true); st.Refused != nil || s.Secret().Reveal() != want {
				t.Errorf("%q in use, refused %v, want %q", s.Secret().Reveal(), st.Refused, want)
			}
		}
		write(os.O_TRUNC, "second-")
		look("first-password")
		look("first-password") // at once again: no time went by
		time.Sleep(credfile.LookEvery / 2)
		write(os.O_APPEND, "password\n")
		look("first-password")
		time.Sleep(credfile.LookEvery - time.Millisecond)
		look("first-password")
		time.Sleep(time.Millisecond)
		look("second-password")

		// One that stays empty is refused as soon as it stays so.
		write(os.O_TRUNC, "")
		look("second-password")
		time.Sleep(credfile.LookEvery)
		if st := s.State(true); st.Refused == nil || s.Secret() != "second-password" {
			t.Errorf("%+v", st)
		}
		write(0, "third\n")
		s.State(true)
		time.Sleep(credfile.LookEvery)
		look("third")
	})
}

// TestMoreAuthorities: a file of authorities counts beside those of the system.
func TestMoreAuthorities(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ca.pem")
	testcert.Put(t, path, testcert.NewCA(t, "one").PEM)
	more, err := credfile.OpenMore(path)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := credfile.OpenPool(path)
	if err != nil {
		t.Fatal(err)
	}
	if more.Pool().Equal(alone.Pool()) {
		t.Skip("this system has no authorities")
	}
	testcert.Put(t, path, testcert.NewCA(t, "two").PEM)
	was := more.Pool()
	if s := more.State(true); s.Refused != nil || more.Pool().Equal(was) || more.Pool().Equal(alone.Pool()) {
		t.Errorf("%+v", s)
	}
}
