package redis

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// TestJudgeTogether goes through all that three reads, metadata, lock, metadata,
// can show of a lock of ours.
func TestJudgeTogether(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, kind, value, after string // ids; value of the lock
		as                         seenAs
		lost                       bool
	}{
		"held":                              {"a", "string", "a", "a", there, false},
		"held, renewed by the next":         {"a", "string", "b", "b", unread, false},
		"released before":                   {"", "none", "", "", gone, false},
		"released between":                  {"a", "none", "", "", unread, false},
		"released and taken again":          {"a", "none", "", "b", unread, false},
		"taken between":                     {"", "string", "a", "a", unread, false},
		"expired or deleted":                {"a", "none", "", "a", gone, true},
		"overwritten by a string":           {"a", "string", "", "a", there, true},
		"overwritten by a hash":             {"a", "hash", "", "a", there, true},
		"overwritten by another of ours":    {"a", "string", "b", "a", there, true},
		"never had metadata":                {"", "string", "a", "", there, false},
		"held, released after the lock was": {"a", "string", "a", "", there, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := keyReading{subject: subject{key: "k"}}
			if test.before != "" {
				s.meta.record = &record.Meta{ID: test.before}
			}
			q := newQuestions(&reader{caps: newCaps()}, 1)
			q.value(t.Context(), 0, &keyReading{subject: s.subject, sample: formats.Sample{Type: "string"}})
			q.when[0].SetVal(-1)
			text := "foreign"
			if test.value != "" {
				text = record.Value(test.value, "secret")
			}
			q.head[0].SetVal(text)
			if test.kind != "string" {
				q.head[0].SetErr(redis.Nil)
			}
			if err := s.judgeTogether(q, 0, test.kind, test.after); err != nil {
				t.Fatal(err)
			}
			if s.as != test.as || s.lost != test.lost {
				t.Errorf("seen as %d, lost %v; want %d, %v", s.as, s.lost, test.as, test.lost)
			}
		})
	}
}
