package etcdsource

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/locksteward/locksteward"
)

// maxValue is how many bytes of a value are kept; what formats read is shorter.
const maxValue = 1024

// recordPrefix is where the records of releases are, which are no locks.
const recordPrefix = "locksteward/releases/"

// Types of locks: a key, or the keys of a queue.
const typeKey, typeQueue = "key", "queue"

// entry is one key.
type entry struct {
	key     string
	create  int64 // revision
	version int64
	lease   int64
	value   []byte
	cut     bool // value is its beginning
	size    int
}

func entryOf(kv *mvccpb.KeyValue) entry {
	e := entry{key: string(kv.Key), create: kv.CreateRevision, version: kv.Version, lease: kv.Lease, size: len(kv.Value)}
	e.value = slices.Clone(kv.Value[:min(len(kv.Value), maxValue)])
	e.cut = len(e.value) < e.size
	return e
}

// found is what has one name: the keys of a queue by their create revisions, of which the
// first holds the lock, or one key.
type found struct {
	name  string
	keys  []entry
	queue bool
}

func (f *found) head() *entry { return &f.keys[0] }

// group sorts keys by the names of their locks. A queue and a key of the same name are
// two locks; the queue has the name.
func group(keys []entry) map[string]*found {
	out := map[string]*found{}
	for i := range keys {
		e := &keys[i]
		if strings.HasPrefix(e.key, recordPrefix) {
			continue
		}
		name, queue := queueOf(e)
		if !queue {
			name = e.key
		}
		f := out[name]
		switch {
		case f == nil || queue && !f.queue:
			out[name] = &found{name: name, keys: []entry{*e}, queue: queue}
		case queue:
			f.keys = append(f.keys, *e)
		}
	}
	for _, f := range out {
		// Keys that one transaction made have the same revision; nobody queues like that.
		slices.SortFunc(f.keys, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.create, b.create), strings.Compare(a.key, b.key))
		})
	}
	return out
}

// reading is what a name's lock looks like. leases has those of its keys; the first one
// was asked for, and the waiters' unless there are too many.
func (f *found) reading(at time.Time, leases map[int64]lease, digest locksteward.DigestKey) (locksteward.Observation, []locksteward.Waiter) {
	e := f.head()
	is := recognise(f.name, e, f.queue)
	o := locksteward.Observation{
		Key: f.name, Type: typeKey, At: at, Lifetime: locksteward.LifetimePersistent, TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt,
		Idle: -1, Size: int64(e.size), Kind: locksteward.KindLock, Library: is.library, Confidence: is.confidence,
		Identity: locksteward.IdentityStrong, TokenDigest: e.digest(digest), Acquired: is.acquired, Asked: is.asked,
		Holder: is.holder, Count: 1, Fence: e.create, Waiters: -1,
	}
	if e.lease != 0 && o.Holder.Session == "" {
		o.Holder.Session = "lease " + strconv.FormatInt(e.lease, 16) // one process, or one part of it
	}
	if l := leases[e.lease]; e.lease != 0 && !l.gone {
		o.Lifetime, o.TTL, o.ExpireAt = locksteward.LifetimeLease, max(0, min(l.end.Sub(at), l.granted)), l.end.UnixMilli()
	}
	if !f.queue {
		return o, nil
	}
	o.Type, o.Waiters = typeQueue, len(f.keys)-1
	waiters := make([]locksteward.Waiter, 0, o.Waiters)
	for i := range f.keys[1:] {
		w := &f.keys[1+i]
		waiter := locksteward.Waiter{Key: f.name, ID: w.key[len(f.name)+1:]}
		if l, ok := leases[w.lease]; ok && !l.gone {
			waiter.Until = l.end
		}
		waiters = append(waiters, waiter)
	}
	return o, waiters
}
