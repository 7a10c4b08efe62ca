package connect

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// wire is the receiving end of a connection: what came is there until it is read.
type wire struct {
	net.Conn // none: nothing but Read is used
	come     chan byte
	end      error
	reads    int
}

func (w *wire) Read(p []byte) (int, error) {
	w.reads++
	b, open := <-w.come
	if !open {
		return 0, w.end
	}
	p[0] = b
	n := 1
	for n < len(p) {
		select {
		case b, open := <-w.come:
			if !open {
				return n, w.end
			}
			p[n] = b
			n++
		default:
			return n, nil
		}
	}
	return n, nil
}

// What comes thick is read together and soon; what comes seldom is read at once.
func TestSampled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every, latest time.Duration
		fewer         bool
	}{
		"thick":  {time.Millisecond, sampleEvery, true},
		"seldom": {20 * time.Millisecond, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const count = 1000
				w := &wire{come: make(chan byte, count), end: io.EOF}
				began := time.Now()
				go func() {
					for i := range count {
						time.Sleep(time.Until(began.Add(time.Duration(i) * c.every)))
						w.come <- byte(i)
					}
					close(w.come)
				}()
				cn := newSampled(w)
				var got []byte
				worst := time.Duration(0)
				for {
					p := make([]byte, 3)
					n, err := cn.Read(p)
					for _, b := range p[:n] {
						if b != byte(len(got)) {
							t.Fatalf("byte %d is %d", len(got), b)
						}
						worst = max(worst, time.Since(began.Add(time.Duration(len(got))*c.every)))
						got = append(got, b)
					}
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if len(got) != count || worst > c.latest {
					t.Errorf("%d bytes of %d, the last of them %s late, want %s at most", len(got), count, worst, c.latest)
				}
				if most := int(count*c.every/sampleEvery) + sampleAtOnce + 2; c.fewer && w.reads > most {
					t.Errorf("%d reads, want %d at most", w.reads, most)
				}
			})
		})
	}
}

// Who has more to read than fits is not held up.
func TestSampledDoesNotFallBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 40 * sampleSize
		sent := make([]byte, size)
		for i := range sent {
			sent[i] = byte(i % 251)
		}
		w := &wire{come: make(chan byte, size), end: io.EOF}
		for _, b := range sent {
			w.come <- b
		}
		close(w.come)
		began := time.Now()
		got, err := io.ReadAll(newSampled(w))
		if err != nil || !bytes.Equal(got, sent) || time.Since(began) > 0 {
			t.Errorf("%d bytes of %d, %v, took %s", len(got), size, err, time.Since(began))
		}
	})
}

// An error comes behind what was read before it, and once: a deadline may be moved.
func TestSampledHandsErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	w := &wire{come: make(chan byte, 2), end: broken}
	w.come <- 'a'
	w.come <- 'b'
	close(w.come)
	cn := newSampled(w)
	p := make([]byte, 8)
	if n, err := cn.Read(p); n != 2 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if n, err := cn.Read(p); n != 0 || !errors.Is(err, broken) || w.reads != 1 {
		t.Fatalf("%d bytes, %v after %d reads", n, err, w.reads)
	}
	if n, err := cn.Read(p); n != 0 || !errors.Is(err, broken) || w.reads != 2 {
		t.Errorf("%d bytes, %v after %d reads", n, err, w.reads)
	}
}
