package formats

import (
	"reflect"
	"testing"
)

func TestAuxiliaryKeysOfGoAndNode(t *testing.T) {
	t.Parallel()
	const token = "lock_token:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17"
	for _, tt := range []struct {
		format string
		key    string
		ok     bool
	}{
		{"go-redislock-reentrant", "{order}:count:" + token, true},
		{"go-redislock-reentrant", "order:count:" + token, true},
		{"go-redislock-reentrant", "{order}", false},
		{"go-redislock-reentrant", ":count:" + token, false},
		{"go-redislock-reentrant", "{order}:count:locks", false},
		{"go-redislock-reentrant", "{lock}:queue", false}, // may be the lock of a queue
		{"asynq-lease", "asynq:{mail}:t:5b1f3c2e", true},
		{"asynq-lease", "asynq:{lock}:pending", true},
		{"asynq-lease", "asynq:{mail}:unique:x:", false},
		{"asynq-lease", "asynq:{mail}:lease", false},
		{"asynq-lease", "asynq:servers:{web-1:7:x}", true},
		{"asynq-lease", "asynq:workers", true},
		{"asynq-lease", "asynq:{}:pending", false},
		{"asynq-lease", "asynq:lock", false},
		{"bullmq-job", "bull:lock:active", true},
		{"bullmq-job", "{bull}:lock:17", true},
		{"bullmq-job", "bull:lock:events", true},
		{"bullmq-job", "bull:mail:17:lock", false},
		{"bullmq-job", "bull:mail:de:17", false},
		{"bullmq-job", "bull:orders:lock", false},
		{"bullmq-job", "shop:lock:active", false},
		{"bullmq-job", "bull::active", false},
	} {
		if lock, ok := byName[tt.format].auxiliaryKey(tt.key); ok != tt.ok || lock != "" {
			t.Errorf("%s: auxiliaryKey(%q) = %q, %t, want %t and no lock", tt.format, tt.key, lock, ok, tt.ok)
		}
	}
}

func TestBullNames(t *testing.T) {
	t.Parallel()
	for key, want := range map[string][2]bool{ // own prefix, a job's lock
		"bull:mail:17:lock":     {true, true},
		"{bullmq}:mail:17:lock": {true, true},
		"shop:mail:17:lock":     {false, true},
		"bull:mail:a:b:lock":    {true, true},
		"bull:17:lock":          {false, false},
		":mail:17:lock":         {false, false},
		"bull:mail::lock":       {false, false},
		"bull:mail:17:locks":    {false, false},
		":lock":                 {false, false},
		"lock":                  {false, false},
		"":                      {false, false},
	} {
		if own, ok := bullLock(key); own != want[0] || ok != want[1] {
			t.Errorf("bullLock(%q) = %t, %t, want %t", key, own, ok, want)
		}
	}
	for key, want := range map[string][2]string{
		"bull:mail:de:17": {"bull:mail:", "de:17"},
		"bull:mail:":      {"bull:mail:", ""},
		"bull:mail":       {},
		"bull":            {},
		"shop:mail:de:1":  {},
	} {
		if queue, rest, ok := bullQueue(key); ok != (want[0] != "") || ok && (queue != want[0] || rest != want[1]) {
			t.Errorf("bullQueue(%q) = %q, %q, %t, want %q", key, queue, rest, ok, want)
		}
	}
}

// The auxiliary keys of go-redislock are read where the name and value
// are its own, and counts.
func TestGoRedisLockAuxiliaryReads(t *testing.T) {
	t.Parallel()
	const token = "lock_token:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17"
	sample := func(key, value string) Sample {
		return Sample{Key: key, Type: typeString, TTL: 5000, Size: int64(len(value)), Value: []byte(value)}
	}
	for key, tt := range map[string]struct {
		value string
		want  []AuxiliaryRead
	}{
		"{a}": {token, []AuxiliaryRead{{Key: "{a}:count:" + token, Type: typeString}}},
		"{b}": {"req-7", []AuxiliaryRead{{Key: "{b}:queue", Type: typeZSet}}},
		"{c}": {"1", nil},
		"d":   {token, nil},
	} {
		if got := AuxiliaryReads(sample(key, tt.value)); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("AuxiliaryReads(%q) = %v, want %v", key, got, tt.want)
		}
	}

	held := sample("{a}", token)
	for text, want := range map[string]int64{"3": 3, "": 1, "0": 1, "-2": 1, "x": 1, "99999999999999999999": 1} {
		held.Auxiliary = map[string]Auxiliary{"{a}:count:" + token: {Size: int64(len(text)), Value: []byte(text)}}
		if d := Recognise(held); d.Format != "go-redislock-reentrant" || d.Count != want {
			t.Errorf("with counter %q: %s taken %d times, want %d", text, d.Format, d.Count, want)
		}
	}
	fair := sample("{b}", "req-7")
	for size, want := range map[int64]int{1: 0, 3: 2, 0: -1} {
		fair.Auxiliary = map[string]Auxiliary{}
		if size > 0 {
			fair.Auxiliary["{b}:queue"] = Auxiliary{Size: size}
		}
		if d := Recognise(fair); d.Format != "go-redislock-fair" || d.Waiters != want {
			t.Errorf("with %d in the queue: %s with %d waiting, want %d", size, d.Format, d.Waiters, want)
		}
	}
}
