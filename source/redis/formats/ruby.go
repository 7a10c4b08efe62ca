package formats

import (
	_ "embed" // for the scripts
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

var (
	//go:embed ruby_redis_semaphore.lua
	rubyRedisSemaphoreLua string
	//go:embed sidekiq_unique_v8.lua
	sidekiqUniqueV8Lua string
	//go:embed sidekiq_unique_v9.lua
	sidekiqUniqueV9Lua string
)

// rubyFormats are the lock libraries of Ruby.
var rubyFormats = []*Format{
	// sidekiq-unique-jobs 9 (alpha): a hash of job id and a JSON document, with one index
	// beside it.
	// Source: mhenrixon/sidekiq-unique-jobs lib/sidekiq_unique_jobs/lua/{lock,unlock}_v9.lua.
	{
		Name:          "sidekiq-unique-v9",
		matches:       isSidekiqLock,
		names:         sidekiqNames,
		decode:        func(s Sample) (Decoded, bool) { return decodeSidekiq(s, timeOfSidekiqV9) },
		Facts:         locksteward.LibraryFacts{NoTTLByDesign: true},
		release:       releaseSidekiq(sidekiqUniqueV9Lua),
		NoPlaceholder: noPlaceholderParts,
		auxiliaryKey:  sidekiqAuxiliaryKey,
		Grants:        sidekiqGrants,
	},
	// sidekiq-unique-jobs 7 and 8: a hash of job id and time of the lock in seconds, with
	// lists, a string and two indexes beside it.
	// Source: mhenrixon/sidekiq-unique-jobs lib/sidekiq_unique_jobs/{key.rb,lua/{lock,unlock}.lua}.
	{
		Name:    "sidekiq-unique-v8",
		matches: isSidekiqLock,
		names:   sidekiqNames,
		decode: func(s Sample) (Decoded, bool) {
			return decodeSidekiq(s, func(value string) (time.Time, bool) {
				at, _, ok := epochOf(value)
				return at, ok
			})
		},
		Facts:         locksteward.LibraryFacts{NoTTLByDesign: true},
		release:       releaseSidekiq(sidekiqUniqueV8Lua),
		NoPlaceholder: noPlaceholderParts,
		auxiliaryKey:  sidekiqAuxiliaryKey,
		Grants:        sidekiqGrants,
	},
	// kenn/redis-mutex: the time when the lock ends, in seconds by the holder's clock,
	// under RedisMutex:<key>, never with a TTL.
	// Source: kenn/redis-mutex lib/redis_mutex.rb.
	{
		Name:    "redis-mutex",
		Type:    typeString,
		matches: prefixed("RedisMutex:"),
		decode: func(s Sample) (Decoded, bool) {
			d, ok := redisMutexString.decode(s)
			if _, fine, _ := epochOf(s.plain()); ok && fine {
				d.Identity = locksteward.IdentityStrong // each acquisition has a time of its own
			}
			return d, ok
		},
		Facts:   locksteward.LibraryFacts{NoTTLByDesign: true},
		release: deleteString,
		NeedsPerson: "its value says by the holder's clock when it ends, and then the next one takes it by itself: " +
			"before that time the holder counts on it, after it a release frees nothing",
		NoPlaceholder: noPlaceholderTime,
	},
	// activejob-uniqueness: a UUID under activejob_uniqueness:<job class>:<md5 or
	// no_arguments>[:runtime], or what the job's own lock_key returns behind the prefix.
	// Source: veeqo/activejob-uniqueness lib/active_job/uniqueness.
	{
		Name:    "activejob-uniqueness",
		Type:    typeString,
		matches: prefixed("activejob_uniqueness:"),
		names:   []namePattern{{prefix: "activejob_uniqueness:"}},
		decode: stringLock{
			kind:       "a UUID, as activejob-uniqueness writes it",
			value:      isFreshUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		release: deleteString,
	},
	// redis-semaphore (Ruby): a hash of taken permits and the time when each was taken;
	// free ones are in a list that waiters pop.
	// Source: dv/redis-semaphore lib/redis/semaphore.rb.
	{
		Name: "ruby-redis-semaphore",
		matches: func(key string) bool {
			return len(key) > len(rubySemaphoreGrabbed) && strings.HasSuffix(key, rubySemaphoreGrabbed)
		},
		decode: decodeRubySemaphore,
		Facts:  locksteward.LibraryFacts{NoTTLByDesign: true},
		release: func(s Sample, p plan) (Command, error) {
			if len(s.Fields) != 1 {
				return Command{}, p.refuseSeveral(len(s.Fields), "permits")
			}
			name := strings.TrimSuffix(s.Key, rubySemaphoreGrabbed)
			args := []any{name + ":AVAILABLE", name + ":EXISTS"}
			for permit, at := range s.Fields {
				args = append(args, permit, at)
			}
			return p.command(rubyRedisSemaphoreLua, nil, args...), nil
		},
		NoPlaceholder: noPlaceholderBlocks,
		NoUndo:        noUndoPermit,
		auxiliaryKey: func(key string) (string, bool) {
			name, ok := strings.CutPrefix(key, rubySemaphorePrefix)
			if !ok {
				return "", false
			}
			for _, part := range []string{":AVAILABLE", ":EXISTS", ":VERSION", ":release_locks"} {
				if strings.HasSuffix(name, part) {
					// A semaphore that nobody has taken has these and no GRABBED.
					return "", true
				}
			}
			return "", false
		},
		Grants: func(glob string) (keys, channels []string) {
			name, ok := strings.CutSuffix(glob, rubySemaphoreGrabbed)
			if !ok {
				return nil, nil
			}
			return []string{name + ":AVAILABLE", name + ":EXISTS"}, nil
		},
	},
	// resque-scheduler's lock of the one master: <host>:<pid> under
	// …resque_scheduler_master_lock.
	// Source: resque/resque-scheduler lib/resque/scheduler/{lock,locking.rb}.
	{
		Name:    "resque-scheduler",
		Type:    typeString,
		matches: func(key string) bool { return strings.HasSuffix(key, "resque_scheduler_master_lock") },
		decode: stringLock{
			kind:       "a host name with a process id",
			value:      func(text string) bool { return nameAndPID(text).PID > 0 },
			origin:     originShared,
			confidence: locksteward.ConfidenceHigh,
			holder:     nameAndPID,
		}.decode,
		release: deleteString,
	},
	// GitLab's ExclusiveLease: a UUID under gitlab:exclusive_lease:<key>, always with a
	// lease.
	// Source: gitlabhq/gitlabhq lib/gitlab/exclusive_lease.rb.
	{
		Name:    "gitlab-lease",
		Type:    typeString,
		matches: prefixed("gitlab:exclusive_lease:"),
		decode: stringLock{
			kind:       "a UUID, as GitLab writes it",
			value:      isFreshUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		release: deleteString,
	},
	// Discourse's DistributedMutex: the second when it ends under <site>:<key>, with a TTL
	// of one second more. Only the keys of the site "default" are claimed, the one of every
	// installation that has a single site.
	// Source: discourse/discourse lib/distributed_mutex.rb.
	{
		Name:     "discourse-mutex",
		Type:     typeString,
		matches:  prefixed("default:"),
		needsTTL: true,
		decode: stringLock{
			kind: "the time when the lock ends, which names no holder",
			value: func(text string) bool {
				_, _, ok := epochOf(text)
				return ok && !strings.Contains(text, ".")
			},
			origin:     originTime,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release:       deleteString,
		NoPlaceholder: noPlaceholderTime,
	},
	// redlock-rb: a UUID under a name as given. Nothing in the value is its own, so only
	// keys that name the library are claimed.
	// Source: leandromoreira/redlock-rb lib/redlock/{client,scripts}.rb.
	{
		Name:    "redlock-rb",
		Type:    typeString,
		matches: named("redlock-rb"),
		decode: stringLock{
			kind:       "a UUID, under a key that names redlock-rb",
			value:      isRandomUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
}

var redisMutexString = stringLock{
	kind:       "the time when the lock ends, which names no holder",
	value:      func(text string) bool { _, _, ok := epochOf(text); return ok },
	origin:     originTime,
	confidence: locksteward.ConfidenceHigh,
}

// epochOf parses seconds since 1970 with or without a fraction, as Ruby's
// Time#to_f and Lua write them. fine says that the fraction goes below the
// millisecond, so that two acquisitions do not write the same text.
func epochOf(text string) (at time.Time, fine, ok bool) {
	whole, fraction, has := strings.Cut(text, ".")
	if len(whole) != 10 || !isDigits(whole) || has && (!isDigits(fraction) || len(fraction) > 17) {
		return time.Time{}, false, false
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, false, false
	}
	at = time.Unix(seconds, 0).UTC()
	if at.Before(firstTime) || !at.Before(lastTime) {
		return time.Time{}, false, false
	}
	if has {
		nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		if err != nil {
			return time.Time{}, false, false
		}
		at = at.Add(time.Duration(nanos))
	}
	return at, len(fraction) >= 4, true
}

func nameAndPID(text string) locksteward.Holder {
	holder, _ := hostAndPID(text)
	return holder
}

// Names of redis-semaphore (Ruby). With a namespaced client there is no prefix.
const (
	rubySemaphorePrefix  = "SEMAPHORE:"
	rubySemaphoreGrabbed = ":GRABBED"
)

func decodeRubySemaphore(s Sample) (Decoded, bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) == 0 || int64(len(s.Fields)) != s.Size {
		return Decoded{}, false
	}
	d := Decoded{
		Confidence: locksteward.ConfidenceMedium,
		Identity:   locksteward.IdentityStrong,
		Count:      int64(len(s.Fields)),
		Waiters:    -1, // clients in BLPOP
		TokenKind:  "a numbered permit and the time it was taken",
	}
	if strings.HasPrefix(s.Key, rubySemaphorePrefix) {
		d.Confidence = locksteward.ConfidenceHigh
	}
	for permit, value := range s.Fields {
		at, fine, ok := epochOf(value)
		if !ok || !isRubyPermit(permit) {
			return Decoded{}, false
		}
		if !fine { // the same permit may be taken twice in one second
			d.Identity = lineage(s)
		}
		if d.Acquired.IsZero() || at.Before(d.Acquired) {
			d.Acquired = at // the oldest of them
		}
	}
	return d, true
}

// isRubyPermit matches the permits that the library makes: a number from 0 on, or
// Random.rand.
func isRubyPermit(text string) bool {
	fraction, drawn := strings.CutPrefix(text, "0.")
	return len(text) <= 5 && isDigits(text) || drawn && len(fraction) <= 24 && isDigits(fraction)
}

// sidekiqPrefix and sidekiqLocked frame a digest: uniquejobs:<digest>[:RUN]:LOCKED.
const (
	sidekiqPrefix = "uniquejobs:"
	sidekiqLocked = ":LOCKED"
)

var sidekiqNames = []namePattern{{prefix: sidekiqPrefix}}

// isSidekiqLock matches the hash that says which jobs hold a digest.
func isSidekiqLock(key string) bool {
	digest, ok := strings.CutSuffix(key, sidekiqLocked)
	return ok && isSidekiqDigest(digest)
}

// isSidekiqDigest matches uniquejobs:<md5 or sha3-256>[:RUN].
func isSidekiqDigest(key string) bool {
	digest, ok := strings.CutPrefix(key, sidekiqPrefix)
	digest = strings.TrimSuffix(digest, ":RUN")
	return ok && (len(digest) == 32 || len(digest) == 64) && isLowerHex(digest)
}

// isJobID matches Sidekiq's job id, 12 random bytes in hex.
func isJobID(text string) bool { return len(text) == 24 && isLowerHex(text) }

// decodeSidekiq decodes a :LOCKED hash whose fields are job ids and whose values
// have the time of the lock, each version in its own form. A digest that allows
// several jobs at a time has several.
func decodeSidekiq(s Sample, acquired func(value string) (time.Time, bool)) (Decoded, bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) == 0 || int64(len(s.Fields)) != s.Size {
		return Decoded{}, false
	}
	d := Decoded{
		Confidence: locksteward.ConfidenceHigh,
		Identity:   locksteward.IdentityStrong, // a job id is drawn once and locks once
		Count:      int64(len(s.Fields)),
		Waiters:    -1, // in lists of their own
		TokenKind:  "a Sidekiq job id",
	}
	for job, value := range s.Fields {
		at, ok := acquired(value)
		if !isJobID(job) || !ok {
			return Decoded{}, false
		}
		if d.Acquired.IsZero() || at.Before(d.Acquired) {
			d.Acquired, d.Holder = at, locksteward.Holder{Session: job} // the oldest of them
		}
	}
	return d, true
}

// releaseSidekiq returns the release of a digest that one job holds.
func releaseSidekiq(script string) func(s Sample, p plan) (Command, error) {
	return func(s Sample, p plan) (Command, error) {
		if len(s.Fields) != 1 {
			return Command{}, p.refuseSeveral(len(s.Fields), "job locks")
		}
		args := []any{strings.TrimSuffix(s.Key, sidekiqLocked)}
		for job, value := range s.Fields {
			args = append(args, job, value)
		}
		return p.command(script, nil, args...), nil
	}
}

// sidekiqAuxiliaryKey matches the keys beside a :LOCKED hash: of one digest, and
// the indexes of all.
func sidekiqAuxiliaryKey(key string) (string, bool) {
	for _, part := range []string{":QUEUED", ":PRIMED", ":INFO", ""} {
		if digest, ok := strings.CutSuffix(key, part); ok && isSidekiqDigest(digest) {
			return digest + sidekiqLocked, true
		}
	}
	rest, ok := strings.CutPrefix(key, sidekiqPrefix)
	first, _, _ := strings.Cut(rest, ":")
	switch first {
	case "digests", "expiring_digests", "orphaned_digests", "changelog", "reaper", "live", "dead", "heartbeat", "working":
		return "", ok
	}
	return "", false
}

func sidekiqGrants(glob string) (keys, channels []string) {
	if !strings.HasPrefix(glob, sidekiqPrefix) && !matchesAnyBeginning(glob) {
		return nil, nil
	}
	digest := strings.TrimSuffix(glob, sidekiqLocked)
	if name, ok := strings.CutSuffix(glob, ":*"); ok {
		digest = name
	}
	return []string{digest, digest + ":QUEUED", digest + ":PRIMED", digest + ":INFO", sidekiqPrefix + "digests", sidekiqPrefix + "expiring_digests"}, nil
}

// timeOfSidekiqV9 parses the time of the lock; a document without one is as good.
func timeOfSidekiqV9(value string) (time.Time, bool) {
	var document struct {
		Time any `json:"time"`
	}
	if len(value) < 2 || value[0] != '{' || json.Unmarshal([]byte(value), &document) != nil {
		return time.Time{}, false
	}
	if seconds, ok := document.Time.(float64); ok {
		if at, _, ok := epochOf(strconv.FormatFloat(seconds, 'f', 6, 64)); ok {
			return at, true
		}
	}
	return time.Time{}, true
}
