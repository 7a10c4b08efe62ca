package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// byHand is a lock as its library leaves it, for the commands of a library's page.
type byHand struct {
	take []string // Commands that make it and what the library keeps beside it.
	// swap are the words between angle brackets and what they are here. The last one
	// that a script compares is `other` for the hold that came in between.
	swap  []string
	other []string
	gone  []string // Keys that are not there afterwards.
	left  []string // Keys that are.
	only  []string // Of the page's commands those that have one of these.
}

const (
	someUUID  = "5f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"
	otherUUID = "6a2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"
	someHash  = "q8Zt4vN1xKp0Rw7LmB3yHs"
	// A permit of Redisson's, without the zeros that no shell passes on.
	somePermit = `\xff\x01\xfe\x02\xfd\x03\xfc\x04\xfb\x05\xfa\x06\xf9\x07\xf8\x08`
)

// freedByHand has a row for each page whose commands are more than one comparison
// of a string. What is left out of gone and left is the row's own lock and nothing.
var freedByHand = map[string]byHand{
	"asynq-lease": {take: []string{"ZADD asynq:{mail}:lease 1794970000 " + someUUID}, left: []string{"asynq:{mail}:lease"}},
	"asynq-unique": {
		take:  []string{"SET asynq:{mail}:unique:email:welcome:9f86d081884c7d659a2feaa0c55ad015 " + someUUID, "HSET asynq:{mail}:t:" + someUUID + " state archived"},
		swap:  []string{"<type>:<sum>", "email:welcome:9f86d081884c7d659a2feaa0c55ad015", "<id>", someUUID},
		other: []string{"<id>", otherUUID},
		gone:  []string{"asynq:{mail}:unique:email:welcome:9f86d081884c7d659a2feaa0c55ad015"}, left: []string{"asynq:{mail}:t:" + someUUID},
	},
	"bullmq-dedup": {
		take: []string{"SET bull:mail:de:invoice-7 17", "HSET bull:mail:17 finishedOn 1794970000000"},
		swap: []string{"<id>", "17"}, other: []string{"<id>", "18"},
		gone: []string{"bull:mail:de:invoice-7"}, left: []string{"bull:mail:17"},
	},
	"distributedlock-readers": {
		take: []string{"SADD invoice.readers app1_17_" + someHash + " app2_18_" + someHash},
		swap: []string{"<machine>_<pid>_<hex>", "app1_17_" + someHash}, left: []string{"invoice.readers"},
	},
	"distributedlock-semaphore": {
		take: []string{"ZADD import 1794970000123 app1_17_" + someHash + " 1794970000456 app2_18_" + someHash},
		swap: []string{"<member>", "app1_17_" + someHash, "<score>", "1794970000123"}, other: []string{"<score>", "1794970000456"}, left: []string{"import"},
	},
	"go-redislock-fair": {
		take: []string{"SET {ticket} request-1", "ZADD {ticket}:queue 1 request-1 2 request-2"},
		swap: []string{"<request id>", "request-1"}, other: []string{"<request id>", "request-2"},
		gone: []string{"{ticket}"}, left: []string{"{ticket}:queue"},
	},
	"go-redislock-reentrant": {
		take: []string{"SET {order} lock_token:" + someUUID, "SET {order}:count:lock_token:" + someUUID + " 2"},
		swap: []string{"<value>", "lock_token:" + someUUID}, other: []string{"<value>", "lock_token:" + otherUUID},
		gone: []string{"{order}", "{order}:count:lock_token:" + someUUID},
	},
	"go-redislock-rw": {
		take: []string{"HSET stock mode read rcount 3 r:" + someUUID + " 2 r:" + otherUUID + " 1"},
		swap: []string{"<token>", someUUID, "<count>", "2"}, other: []string{"<count>", "1"}, left: []string{"stock"},
	},
	"huey-lock": {
		take: []string{"HSET huey.results.app app.lock.report 1 other 1", "SET huey.r.app.app.lock.report 1"},
		gone: []string{"huey.r.app.app.lock.report"}, left: []string{"huey.results.app"},
	},
	"laravel-schedule-mutex-legacy": {
		take: []string{"SET laravel_database_laravel_cache_:framework/schedule-da39a3ee5e6b4b0d3255bfef95601890afd80709 b:1; EX 86400"},
		swap: []string{"<sha1>", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		gone: []string{"laravel_database_laravel_cache_:framework/schedule-da39a3ee5e6b4b0d3255bfef95601890afd80709"},
	},
	"locksteward": {
		take: []string{"SET lock:order:42 ls2:HOLD1:secret PX 30000", `SET locksteward:hold:{lock:order:42} {"id":"HOLD1","v":2}`},
		swap: []string{"<the value>", "ls2:HOLD1:secret"}, other: []string{"<the value>", "ls2:HOLD2:secret"},
		gone: []string{"lock:order:42", "locksteward:hold:{lock:order:42}"},
	},
	"python-redis-lock": {
		take: []string{"SET lock:report q8Zt4vN1xKp0Rw7LmB3yHs2U"},
		swap: []string{"<value>", "q8Zt4vN1xKp0Rw7LmB3yHs2U"}, other: []string{"<value>", "zZt4vN1xKp0Rw7LmB3yHs2Uq"},
		gone: []string{"lock:report"}, left: []string{"lock-signal:report"},
	},
	"redis-semaphore-semaphore": {
		take: []string{"ZADD semaphore:printer 1794970000123 " + someUUID + " 1794970000456 " + otherUUID},
		swap: []string{"<member>", someUUID, "<score>", "1794970000123"}, other: []string{"<score>", "1794970000124"}, left: []string{"semaphore:printer"},
	},
	"redisson": {
		take: []string{"HSET myLock " + someUUID + ":1 2", "PEXPIRE myLock 30000"},
		swap: []string{"<uuid>:<thread>", someUUID + ":1", "<count>", "2"}, other: []string{"<count>", "3"},
		gone: []string{"myLock"},
	},
	"redisson-fair": {
		take: []string{"HSET myLock " + someUUID + ":1 1", "RPUSH redisson_lock_queue:{myLock} " + otherUUID + ":7", "ZADD redisson_lock_timeout:{myLock} 1794970000123 " + otherUUID + ":7"},
		swap: []string{"<uuid>:<thread>", someUUID + ":1", "<count>", "1", "<first in the queue>", otherUUID + ":7"}, other: []string{"<count>", "2"},
		gone: []string{"myLock", "redisson_lock_queue:{myLock}", "redisson_lock_timeout:{myLock}"},
	},
	"redisson-faster-multilock": {
		take: []string{"HSET class_100 " + multilock(someHash, someUUID+":1") + " " + multilock("z"+someHash[1:], otherUUID+":1")},
		swap: []string{"<hash>", someHash, "<uuid>:<thread>", someUUID + ":1", "<expire_time>", "1794970000123"}, other: []string{"<expire_time>", "1794970010123"},
		left: []string{"class_100"},
	},
	"redisson-latch": {take: []string{"SET myLatch 3"}, gone: []string{"myLatch"}},
	"redisson-permit-semaphore": {
		take: []string{"ZADD {upload}:timeout 1794970000123 " + unescaped(somePermit), "SET upload 4"},
		swap: []string{`\x00\xff…`, somePermit, "<score>", "1794970000123"}, other: []string{"<score>", "1794970000124"},
		gone: []string{"{upload}:timeout"}, left: []string{"upload"},
	},
	"redisson-rw-read": {
		take: []string{"HSET stock mode read " + someUUID + ":1 1 " + otherUUID + ":1 1", "SET {stock}:" + someUUID + ":1:rwlock_timeout:1 1"},
		swap: []string{"<uuid>:<thread>", someUUID + ":1", "<count>", "1"}, other: []string{"<count>", "2"},
		gone: []string{"{stock}:" + someUUID + ":1:rwlock_timeout:1"}, left: []string{"stock"},
	},
	"redisson-rw-write": {
		take: []string{"HSET stock mode write " + someUUID + ":1:write 1"},
		swap: []string{"<uuid>:<thread>", someUUID + ":1", "<count>", "1"}, other: []string{"<count>", "2"},
		gone: []string{"stock"},
	},
	"redisson-semaphore": {take: []string{"SET mySemaphore 2"}, swap: []string{"<the number that INCRBY returned>", "3"}, left: []string{"mySemaphore"}},
	"rq-maintenance":     {take: []string{"SET rq:clean_registries:default 1"}, gone: []string{"rq:clean_registries:default"}},
	"ruby-redis-semaphore": {
		take: []string{"HSET SEMAPHORE:printer:GRABBED 0 1794970000.25 1 1794970001.5"},
		swap: []string{"<permit>", "0", "<time>", "1794970000.25"}, other: []string{"<time>", "1794970001.5"},
		left: []string{"SEMAPHORE:printer:GRABBED", "SEMAPHORE:printer:AVAILABLE"},
	},
	"sidekiq-unique-v8": {
		take: []string{"HSET uniquejobs:9f86:LOCKED b4a577edbccf1d805744efa9 1794970000.25 0a4577edbccf1d805744efb1 1794970001.5", "SET uniquejobs:9f86:INFO {}"},
		swap: []string{"<digest>", "9f86", "<job id>", "b4a577edbccf1d805744efa9", "<time>", "1794970000.25"}, other: []string{"<time>", "1794970001.5"},
		left: []string{"uniquejobs:9f86:LOCKED"},
	},
	"sidekiq-unique-v9": {
		take: []string{"HSET uniquejobs:9f86:LOCKED b4a577edbccf1d805744efa9 {}", "ZADD uniquejobs:digests 1 uniquejobs:9f86"},
		swap: []string{"<digest>", "9f86", "<job id>", "b4a577edbccf1d805744efa9"},
		gone: []string{"uniquejobs:9f86:LOCKED", "uniquejobs:digests"},
	},
	"spring-integration": {
		take: []string{"SET spring-locks:job " + someUUID}, swap: []string{"<uuid>", someUUID}, other: []string{"<uuid>", otherUUID},
		gone: []string{"spring-locks:job"},
	},
	"symfony-lock": {
		take: []string{"ZADD invoice 4102000000000 " + someUUID + " 4102000001000 " + otherUUID},
		swap: []string{"<member>", someUUID, "<score>", "4102000000000"}, other: []string{"<score>", "4102000001000"}, left: []string{"invoice"},
	},
	"unknown/hash": {
		take: []string{"HSET the-lock worker-7 1794970000 worker-8 1794970001"},
		swap: []string{"<field>", "worker-7", "<value>", "1794970000"}, other: []string{"<value>", "1794970001"}, left: []string{"the-lock"},
		only: []string{"CLIENT LIST", " TYPE ", " PTTL ", " HGETALL ", "'HGET'"},
	},
	"unknown/sorted set": {
		take: []string{"ZADD the-lock 1794970000 worker-7 1794970001 worker-8"},
		swap: []string{"<member>", "worker-7", "<score>", "1794970000"}, other: []string{"<score>", "1794970001"}, left: []string{"the-lock"},
		only: []string{" ZRANGE ", "'ZSCORE'"},
	},
	"unknown/set": {take: []string{"SADD the-lock worker-7"}, left: []string{"the-lock"}, only: []string{" SMEMBERS "}},
}

// multilock is one value of Redisson's FasterMultiLock.
func multilock(hash, owner string) string {
	return hash + " " + owner + " " + hash + ":" + owner + ":expire_time 1794970000123 " + hash + ":" + owner + ":lock_count 1"
}

// unescaped is what printf makes of \x and two digits.
func unescaped(text string) string {
	return regexp.MustCompile(`\\x[0-9a-f]{2}`).ReplaceAllStringFunc(text, func(s string) string {
		high, low := strings.IndexByte("0123456789abcdef", s[2]), strings.IndexByte("0123456789abcdef", s[3])
		return string([]byte{byte(high<<4 | low)})
	})
}

// comparesString is the one command of most pages.
var comparesString = regexp.MustCompile(`^redis-cli EVAL "if redis\.call\('GET',KEYS\[1\]\)==ARGV\[1\] then return redis\.call\('DEL',KEYS\[1\]\) end return 0" 1 (\S+) ('[^']*')(?:\s+#.*)?$`)

// What the page of a library has people do by hand frees the hold that they looked
// at, and with the values of another one it touches nothing.
func TestByHandOfLibraries(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	rdb := testredis.Start(t).Client(t)
	used := map[string]bool{}
	for page, text := range docPages(t) {
		name := strings.TrimSuffix(path.Base(page), ".md")
		if path.Dir(page) != "docs/libraries" {
			continue
		}
		t.Run(name, func(t *testing.T) { // One after the other: they share the server.
			lines := handLines(page, text)
			if len(lines) == 0 {
				ofWhich := refersByHand.FindStringSubmatch(text)
				switch f, _ := formats.Get(name); {
				case ofWhich == nil:
					t.Errorf("%s: no command under By hand, and no page that has it", page)
				case ofWhich[1] == "README" && f.Type != "string":
					t.Errorf("%s: frees a %q as a string", page, f.Type)
				}
			}
			var rows []string
			for key := range freedByHand {
				if key == name || strings.HasPrefix(key, name+"/") {
					rows = append(rows, key)
					used[key] = true
				}
			}
			slices.Sort(rows)
			if len(rows) > 0 {
				ran := 0
				for _, key := range rows {
					of := lines
					if only := freedByHand[key].only; only != nil {
						of = slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
							return !slices.ContainsFunc(only, func(part string) bool { return strings.Contains(line, part) })
						})
					}
					freeByHand(t, rdb, page, key, of, freedByHand[key])
					ran += len(of)
				}
				if ran < len(lines) {
					t.Errorf("%s: %d of %d commands are in a row of freedByHand", page, ran, len(lines))
				}
				return
			}
			for _, line := range lines {
				m := comparesString.FindStringSubmatch(line)
				if m == nil {
					t.Errorf("%s: not in freedByHand: %s", page, line)
					continue
				}
				key := strings.Trim(m[1], "'")
				freeByHand(t, rdb, page, name, []string{line}, byHand{
					take: []string{"SET " + key + " held-by-one"},
					swap: []string{m[2], "'held-by-one'"}, other: []string{m[2], "'held-by-another'"}, gone: []string{key},
				})
			}
		})
	}
	for key := range freedByHand {
		if !used[key] {
			t.Errorf("freedByHand[%q] is of no page", key)
		}
	}
}

// refersByHand finds the page whose commands a page refers to: for a lock that is one string the README.
var refersByHand = regexp.MustCompile(`(?:[Bb]y hand|the way by hand too)[^\n]{0,12}\n*[^\n]{0,12}[Aa]s (?:of )?\[[^]]+\]\((README|[a-z-]+)\.md`)

// inlineRedis is a command of redis-cli within a sentence.
var inlineRedis = regexp.MustCompile("`(redis-cli (?:--|[A-Z])[^`\n]+)`")

// handLines returns the lines of redis-cli of a page.
func handLines(page, text string) []string {
	var out []string
	for _, b := range docBlocks(page, text) {
		for _, line := range shellLines(b) {
			if strings.HasPrefix(line, "redis-cli ") {
				out = append(out, line)
			}
		}
	}
	for _, m := range inlineRedis.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// freeByHand runs the lines with the values of another hold, which must touch
// nothing, and with those of this one.
func freeByHand(t *testing.T, rdb *redis.Client, page, name string, lines []string, lock byHand) {
	t.Helper()
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, take := range lock.take {
		var args []any
		for word := range strings.FieldsSeq(take) {
			args = append(args, word)
		}
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %s: %v", name, take, err)
		}
	}
	before := everything(t, rdb)
	refused := 0
	for _, line := range lines {
		if !strings.Contains(line, " EVAL ") || len(lock.other) == 0 {
			continue
		}
		swapped := swap(line, append(slices.Clone(lock.other), lock.swap...))
		want := "0"
		if strings.Contains(line, "return -1") {
			want = "-1"
		}
		if out := redisCLI(t, rdb, page, swapped); out != want {
			t.Errorf("%s: %s\nanswers %q about another hold, want %s", page, swapped, out, want)
		}
		refused++
	}
	if after := everything(t, rdb); !maps.Equal(before, after) {
		t.Errorf("%s: another hold was touched: %q, before %q", page, after, before)
	}
	if len(lock.other) > 0 && refused == 0 {
		t.Errorf("%s: nothing is compared with %q", page, lock.other)
	}
	for _, line := range lines {
		swapped := swap(line, lock.swap)
		out := redisCLI(t, rdb, page, swapped)
		if strings.Contains(line, " EVAL ") && (out == "0" && !strings.Contains(line, "return -1") || out == "-1") {
			t.Errorf("%s: %s\nanswers %s: the hold is not freed", page, swapped, out)
		}
	}
	for _, key := range append(slices.Clone(lock.gone), lock.left...) {
		if n := rdb.Exists(t.Context(), key).Val(); (n == 0) != slices.Contains(lock.gone, key) {
			t.Errorf("%s: %q is there: %t", page, key, n == 1)
		}
	}
	if len(lock.gone) == 0 && len(lock.other) > 0 && maps.Equal(before, everything(t, rdb)) {
		t.Errorf("%s: nothing was freed", page)
	}
}

// everything returns what stands in a server, by key.
func everything(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		switch kind := rdb.Type(t.Context(), key).Val(); kind {
		case "string":
			out[key] = rdb.Get(t.Context(), key).Val()
		case "hash":
			out[key] = fmt.Sprint(rdb.HGetAll(t.Context(), key).Val())
		case "set":
			out[key] = fmt.Sprint(rdb.SMembersMap(t.Context(), key).Val())
		case "zset":
			out[key] = fmt.Sprint(rdb.ZRangeWithScores(t.Context(), key, 0, -1).Val())
		case "list":
			out[key] = fmt.Sprint(rdb.LRange(t.Context(), key, 0, -1).Val())
		default:
			t.Fatalf("%s is a %s", key, kind)
		}
	}
	return out
}

func swap(line string, pairs []string) string { return strings.NewReplacer(pairs...).Replace(line) }

// redisCLI runs a line of redis-cli against the server of rdb and returns what it prints.
func redisCLI(t *testing.T, rdb *redis.Client, page, line string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", line)
	cmd.Env = append(os.Environ(), "BASH_ENV=testdata/pages.sh", "R=redis://"+rdb.Options().Addr)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s\n%v\n%s", page, line, err, out)
	}
	return strings.TrimSpace(string(out))
}
