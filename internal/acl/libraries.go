package acl

import "strings"

// library is a lock library that keeps more than the lock's own key, or wakes
// its waiters on a channel. The names are those of docs/dialects.
type library struct {
	name string
	// beside gives the patterns of what stands beside locks that match glob;
	// nothing if no lock of the library can match.
	beside func(glob string) (keys, channels []string)
}

var libraries = []library{
	{"redisson", func(glob string) (keys, channels []string) {
		for _, word := range []string{"redisson_lock_queue", "redisson_lock_timeout", "redisson_lock_token"} {
			keys = append(keys, prefixed(word, glob)...)
		}
		keys = append(keys, "{"+glob+"}:*:rwlock_timeout:*", glob+":*:rwlock_timeout:*")
		channels = prefixed("redisson_lock__channel", glob)
		for _, c := range prefixed("redisson_lock__channel", glob) {
			channels = append(channels, c+":*") // one for each waiter of a fair lock
		}
		return keys, append(channels, prefixed("redisson_rwlock", glob)...)
	}},
	{"redisson-permit-semaphore", func(glob string) (keys, channels []string) {
		name, ok := strings.CutSuffix(glob, ":timeout")
		if !ok && strings.Contains(glob, "{") {
			name, ok = strings.CutSuffix(glob, ":*")
		}
		if !ok {
			return nil, nil
		}
		if strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}") {
			name = name[1 : len(name)-1]
		}
		keys = []string{name}
		return keys, prefixed("redisson_sc", name)
	}},
	{"go-redislock", func(glob string) (keys, channels []string) {
		return []string{glob + ":count:*", glob + ":queue"}, nil
	}},
	{"python-redis-lock", func(glob string) (keys, channels []string) {
		name, ok := strings.CutPrefix(glob, "lock:")
		switch {
		case ok:
			return []string{"lock-signal:" + name}, nil
		case wild(glob):
			return []string{"lock-signal:*"}, nil
		default:
			return nil, nil
		}
	}},
	{"sidekiq-unique-jobs", func(glob string) (keys, channels []string) {
		if !strings.HasPrefix(glob, "uniquejobs:") && !wild(glob) {
			return nil, nil
		}
		digest := strings.TrimSuffix(glob, ":LOCKED")
		if name, ok := strings.CutSuffix(glob, ":*"); ok {
			digest = name
		}
		return []string{digest, digest + ":QUEUED", digest + ":PRIMED", digest + ":INFO", "uniquejobs:digests", "uniquejobs:expiring_digests"}, nil
	}},
	{"ruby-redis-semaphore", func(glob string) (keys, channels []string) {
		name, ok := strings.CutSuffix(glob, ":GRABBED")
		if !ok {
			return nil, nil
		}
		return []string{name + ":AVAILABLE", name + ":EXISTS"}, nil
	}},
	{"asynq-unique", func(glob string) (keys, channels []string) {
		return between(glob, "asynq:", ":unique:", ":t:*")
	}},
	{"bullmq-dedup", func(glob string) (keys, channels []string) {
		return between(glob, "", ":de:", ":*")
	}},
	{"spring-integration", func(glob string) (keys, channels []string) {
		registry, _, ok := strings.Cut(glob, ":")
		switch {
		case strings.Contains(registry, "*"): // the colon may be inside of what the star takes
			registry, _, _ = strings.Cut(registry, "*")
			registry += "*"
		case !ok:
			return nil, nil
		}
		return nil, []string{registry + "-channel:" + glob}
	}},
}

// prefixed are the two forms in which Redisson puts a word before a name: with
// braces around it, and, if it has some already, without.
func prefixed(word, glob string) []string {
	if strings.HasPrefix(glob, "{") {
		return []string{word + ":" + glob}
	}
	return []string{word + ":{" + glob + "}", word + ":" + glob}
}

// between is for libraries whose name of a lock has a word in its middle, which
// is another one in the name of what the lock stands for.
func between(glob, begin, word, instead string) (keys, channels []string) {
	if !strings.HasPrefix(glob, begin) {
		return nil, nil
	}
	queue, _, ok := strings.Cut(glob, word)
	if !ok {
		return nil, nil
	}
	return []string{queue + instead}, nil
}

// wild says that a pattern begins with any bytes.
func wild(glob string) bool { return strings.HasPrefix(glob, "*") || strings.HasPrefix(glob, "?") }
