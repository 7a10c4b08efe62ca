package testredis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestReplyCounter(t *testing.T) {
	t.Parallel()
	// Each element is one reply; pushes ride on the reply behind them.
	stream := []string{
		"+OK\r\n",
		"-ERR no\r\n",
		":1\r\n",
		"$-1\r\n",
		"$0\r\n\r\n",
		"$12\r\nin\r\n*2\r\n\n+x!\r\n",
		"*-1\r\n",
		"*0\r\n",
		"*2\r\n$1\r\na\r\n*2\r\n:1\r\n$1\r\nb\r\n",
		"%1\r\n+key\r\n*1\r\n:7\r\n",
		"~2\r\n#t\r\n_\r\n",
		"|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n",
		">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n,1.5\r\n",
		"=7\r\ntxt:abc\r\n",
	}
	all := strings.Join(stream, "")
	var want []int
	end := 0
	for _, s := range stream {
		end += len(s)
		want = append(want, end)
	}
	for size := 1; size <= len(all); size++ {
		t.Run(fmt.Sprintf("in reads of %d", size), func(t *testing.T) {
			t.Parallel()
			var c replyCounter
			var got []int
			for at := 0; at < len(all); at += size {
				for _, e := range c.feed([]byte(all[at:min(at+size, len(all))])) {
					got = append(got, at+e)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("replies end at %v, want %v", got, want)
			}
		})
	}
}

func TestReplyCounterGivesUpOnForeignStreams(t *testing.T) {
	t.Parallel()
	var c replyCounter
	if got := c.feed([]byte("\x16\x03\x01\n+OK\r\n")); got != nil || !c.opaque {
		t.Errorf("counted %v in a stream that is not RESP", got)
	}
}
