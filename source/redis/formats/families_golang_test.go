package formats

import (
	"reflect"
	"testing"
)

func TestCompanionsOfGoAndNode(t *testing.T) {
	t.Parallel()
	const token = "lock_token:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17"
	for _, tt := range []struct {
		f   *family
		key string
		ok  bool
	}{
		{familyGoRedisLockReentrant, "{order}:count:" + token, true},
		{familyGoRedisLockReentrant, "order:count:" + token, true},
		{familyGoRedisLockReentrant, "{order}", false},
		{familyGoRedisLockReentrant, ":count:" + token, false},
		{familyGoRedisLockReentrant, "{order}:count:locks", false},
		{familyGoRedisLockReentrant, "{lock}:queue", false}, // may be the lock of a queue
		{familyAsynqLease, "asynq:{mail}:t:5b1f3c2e", true},
		{familyAsynqLease, "asynq:{lock}:pending", true},
		{familyAsynqLease, "asynq:{mail}:unique:x:", false},
		{familyAsynqLease, "asynq:{mail}:lease", false},
		{familyAsynqLease, "asynq:servers:{web-1:7:x}", true},
		{familyAsynqLease, "asynq:workers", true},
		{familyAsynqLease, "asynq:{}:pending", false},
		{familyAsynqLease, "asynq:lock", false},
		{familyBullMQJob, "bull:lock:active", true},
		{familyBullMQJob, "{bull}:lock:17", true},
		{familyBullMQJob, "bull:lock:events", true},
		{familyBullMQJob, "bull:mail:17:lock", false},
		{familyBullMQJob, "bull:mail:de:17", false},
		{familyBullMQJob, "bull:orders:lock", false},
		{familyBullMQJob, "shop:lock:active", false},
		{familyBullMQJob, "bull::active", false},
	} {
		if lock, ok := tt.f.companion(tt.key); ok != tt.ok || lock != "" {
			t.Errorf("%s: companion(%q) = %q, %t, want %t and no lock", tt.f.name, tt.key, lock, ok, tt.ok)
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

// What stands beside go-redislock's locks is asked for where the name and value
// are its own, and counts.
func TestGoRedisLockAsks(t *testing.T) {
	t.Parallel()
	const token = "lock_token:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17"
	sample := func(key, value string) Sample {
		return Sample{Key: key, Type: typeString, TTL: 5000, Size: int64(len(value)), Value: []byte(value)}
	}
	for key, tt := range map[string]struct {
		value string
		want  []Ask
	}{
		"{a}": {token, []Ask{{Key: "{a}:count:" + token, Type: typeString}}},
		"{b}": {"req-7", []Ask{{Key: "{b}:queue", Type: typeZSet}}},
		"{c}": {"1", nil},
		"d":   {token, nil},
	} {
		if got := Asks(sample(key, tt.value)); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Asks(%q) = %v, want %v", key, got, tt.want)
		}
	}

	held := sample("{a}", token)
	for text, want := range map[string]int64{"3": 3, "": 1, "0": 1, "-2": 1, "x": 1, "99999999999999999999": 1} {
		held.Beside = map[string]Beside{"{a}:count:" + token: {Size: int64(len(text)), Value: []byte(text)}}
		if d := Recognise(held); d.Dialect != "go-redislock-reentrant" || d.Count != want {
			t.Errorf("with counter %q: %s taken %d times, want %d", text, d.Dialect, d.Count, want)
		}
	}
	fair := sample("{b}", "req-7")
	for size, want := range map[int64]int{1: 0, 3: 2, 0: -1} {
		fair.Beside = map[string]Beside{}
		if size > 0 {
			fair.Beside["{b}:queue"] = Beside{Size: size}
		}
		if d := Recognise(fair); d.Dialect != "go-redislock-fair" || d.Waiters != want {
			t.Errorf("with %d in the queue: %s with %d waiting, want %d", size, d.Dialect, d.Waiters, want)
		}
	}
}
