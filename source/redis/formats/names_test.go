package formats_test

import (
	"testing"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/formats"
)

func TestMayBeLock(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"{upload}:timeout": true, "up{load}:timeout": true, "{cart}:eZ9Qd0yv2H0uW1mYpKx3Rg:countdownlatch": true,
		"invoice.readers": true, "invoice.writer": true, "{order}": true,
		"asynq:{mail}:unique:email:send:9f86d081884c7d659a2feaa0c55ad015": true,
		"qo_tasks.report_user-7":                                 true,
		"huey.results.app":                                       true,
		"rq:clean_registries:default":                            true,
		"l:relocation:7":                                         true,
		"activejob_uniqueness:my_job:arguments":                  true,
		"uniquejobs:9f86d081884c7d659a2feaa0c55ad015:RUN:QUEUED": true,
		"laravel_database_laravel_cache_:laravel_unique_job:App\\Jobs\\Import:7":         true,
		"laravel-database-laravel-cache-laravel-queue-overlap:App\\Jobs\\Import:7":       true,
		"app_cache_framework/schedule-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b":          true,
		"laravel_cache_:framework/schedule-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b0305": true,
		"laravel_database_laravel_cache_:framework/command-import":                       true,
		"": false, "a": false, "ab": false, "{}": false, "user:7": false, "session:5b1f3c2e": false, "asynq:{mail}:t:7": false,
		"{cart}:7": false, "laravel_database_laravel_cache_:products": false, ".readers": false, "qo_": false, "timeout": false,
		"framework/schedule-9f86d081": false, "l:": false, "user:7:timeout": false,
	} {
		if got := formats.MayBeLock(key); got != want {
			t.Errorf("MayBeLock(%q) = %t, want %t", key, got, want)
		}
	}
}

// Every fixture that is a lock without configuration is looked at because of its
// name: by a word, as a candidate, or since a library has such names. The rest
// have names of their own, and only a class finds them: each library's page says
// so.
func TestLocksOfKnownNamesAreFound(t *testing.T) {
	t.Parallel()
	classes, err := class.NewSet(nil)
	must(t, err)
	freeNames := map[string]bool{}
	for path, f := range readFixtures(t) {
		s := f.sample(t)
		if f.Want.Kind == "lock" && classes.Classify(s.Key) == (class.Match{}) && !formats.MayBeLock(s.Key) {
			freeNames[formats.Recognise(s).Format] = true
			t.Log(path, s.Key)
		}
	}
	for name := range freeNames {
		if !namesItself[name] {
			t.Errorf("locks of %s are missed: give the library's names to MayBeLock, or add it to those whose locks have any name", name)
		}
	}
}

// namesItself are the formats whose locks have any name that the application
// gives them.
var namesItself = map[string]bool{
	"locksteward": true, // found by the metadata beside it
	"redisson":    true, "redisson-fair": true, "redisson-fenced": true, "redisson-rw-read": true, "redisson-rw-write": true,
	"redisson-faster-multilock": true,
	"symfony-lock":              true, "shedlock": true, "distributedlock-mutex": true, "distributedlock-semaphore": true,
	"go-redislock-rw": true,
}

func BenchmarkMayBeLock(b *testing.B) {
	keys := []string{"user:1794970000:profile", "session:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17", "cache:v1:product/7", "{cart}:7", "laravel_database_laravel_cache_:products", "filler:0000000042"}
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range keys {
			formats.MayBeLock(key)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/key")
}
