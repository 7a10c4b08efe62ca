package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyDistributedLockMutex is DistributedLock's mutex, and the writer of its
// reader/writer lock under <name>.writer.
// Source: madelson/DistributedLock Primitives/{RedisMutexPrimitive,RedisReaderWriterLockPrimitives}.cs.
var familyDistributedLockMutex = distributedLockMutex()

func distributedLockMutex() *family {
	f := stringFamily("distributedlock-mutex", nil, stringLock{
		kind:       distributedLockKind,
		value:      func(s string) bool { _, ok := distributedLockID(strings.TrimSuffix(s, writerWaiting)); return ok },
		origin:     originAcquisition,
		confidence: locksteward.ConfidenceHigh,
		renewEvery: distributedLockRenew,
		holder: func(s string) locksteward.Holder {
			holder, _ := distributedLockID(strings.TrimSuffix(s, writerWaiting))
			return holder
		},
	})
	decode, release := f.recognise, f.release
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		if ok && strings.HasSuffix(s.Key, ".writer") {
			d.Mode = modeWrite
		}
		return d, ok
	}
	f.release = func(s Sample, p plan) (Command, error) {
		if strings.HasSuffix(string(s.Value), writerWaiting) {
			return Command{}, p.refuse("a writer waits for the readers here and nobody holds it for writing yet")
		}
		return release(s, p)
	}
	return f
}
