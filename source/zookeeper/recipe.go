package zksource

import (
	"regexp"
	"strconv"
	"strings"
)

// Libraries whose nodes are known.
const (
	libraryCurator     = "curator"
	libraryKazoo       = "kazoo"
	libraryGoZookeeper = "go-zookeeper"
	libraryDotNet      = "distributedlock-dotnet"
	libraryZKRuby      = "zk-ruby"
	libraryRecipe      = "zookeeper-recipes"
	// libraryFixed is a fixed ephemeral node of any library: Kafka's /controller, Patroni's
	// /service/NAME/leader, /hbase/master.
	libraryFixed = "zookeeper-ephemeral"
	// libraryUnknown is a queue of which nobody knows who made it.
	libraryUnknown = "unknown"
)

// kind is what a child of a lock directory is for.
type kind int

// The kinds.
const (
	kindMutex kind = iota // excludes all behind it
	kindWrite             // as a mutex, of a lock that has readers too
	kindRead              // shares the lock with the readers behind it
	kindLease             // of a semaphore: holds beside the others
	kindFixed             // a lock under its own path
)

// member is a child of a lock directory, from its name alone.
type member struct {
	name    string
	seq     int64 // negative: it has none
	kind    kind
	library string
	// fresh: the name has an identifier that no other acquisition of the lock has.
	fresh bool
}

// shared reports whether others may hold the lock at the same time, so that each hold is a
// lock of its own.
func (m member) shared() bool { return m.kind == kindRead || m.kind == kindLease }

// format is how a library names its nodes: expr is matched with what stands before the
// sequence number.
//
// Read from the sources of:
//   - Curator 5.4: recipes/locks/LockInternals.java, StandardLockInternalsDriver.java,
//     InterProcessReadWriteLock.java, InterProcessSemaphoreV2.java, leader/LeaderLatch.java, and
//     framework/imps/ProtectedUtils.java for _c_<uuid>-; the data is the client's address
//     (CuratorFrameworkFactory.java, LOCAL_ADDRESS), of a latch its id
//   - kazoo 2.8: kazoo/recipe/lock.py; the data is the identifier, empty by default
//   - go-zookeeper 1.0.4: lock.go, and conn.go for CreateProtectedEphemeralSequential
//   - DistributedLock for .NET: ZooKeeperNodeCreator.cs
//   - zk-ruby: lib/zk/locker/locker_base.rb, exclusive and shared
//   - ZooKeeper's own zookeeper-recipes-lock: WriteLock.java, whose names have the session
type format struct {
	expr    *regexp.Regexp
	library string
	kind    kind
	fresh   bool
}

const uuidExpr = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

var formats = []format{
	{regexp.MustCompile(`^_c_` + uuidExpr + `-(lock|latch)-$`), libraryCurator, kindMutex, true},
	{regexp.MustCompile(`^_c_` + uuidExpr + `-__READ__$`), libraryCurator, kindRead, true},
	{regexp.MustCompile(`^_c_` + uuidExpr + `-__WRIT__$`), libraryCurator, kindWrite, true},
	{regexp.MustCompile(`^_c_` + uuidExpr + `-lease-$`), libraryCurator, kindLease, true},
	{regexp.MustCompile(`^_c_[0-9a-f]{32}-lock-$`), libraryGoZookeeper, kindMutex, true},
	{regexp.MustCompile(`^[0-9a-f]{32}__lock__$`), libraryKazoo, kindMutex, true},
	{regexp.MustCompile(`^[0-9a-f]{32}__rlock__$`), libraryKazoo, kindRead, true},
	{regexp.MustCompile(`^x-[0-9]+-$`), libraryRecipe, kindMutex, true},
	{regexp.MustCompile(`^lock-$`), libraryDotNet, kindMutex, false},
	{regexp.MustCompile(`^ex$`), libraryZKRuby, kindMutex, false},
	{regexp.MustCompile(`^sh$`), libraryZKRuby, kindRead, false},
}

// kazooLease is the node of a kazoo Semaphore: an identifier of the Semaphore, used again
// with each of its acquisitions, and no number.
var kazooLease = regexp.MustCompile(`^[0-9a-f]{32}$`)

// seqDigits is how many digits ZooKeeper appends to the name of a sequential node.
const seqDigits = 10

// parseMember reads the name of a child of a lock directory. A sequential node that no
// format knows is a member of a queue of an unknown library; false is any other node.
func parseMember(name string) (member, bool) {
	if kazooLease.MatchString(name) {
		return member{name: name, seq: -1, kind: kindLease, library: libraryKazoo}, true
	}
	if len(name) < seqDigits {
		return member{}, false
	}
	head, digits := name[:len(name)-seqDigits], name[len(name)-seqDigits:]
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strings.Trim(digits, "0123456789") != "" {
		return member{}, false
	}
	m := member{name: name, seq: seq, kind: kindMutex, library: libraryUnknown}
	for _, f := range formats {
		if f.expr.MatchString(head) {
			m.kind, m.library, m.fresh = f.kind, f.library, f.fresh
			break
		}
	}
	return m, true
}

// hostExpr is what a host's name or address looks like.
var hostExpr = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}$`)

// hostOf is whom the data of a node names; "" if it is no plain name.
func hostOf(data []byte) string {
	if hostExpr.Match(data) {
		return string(data)
	}
	return ""
}

// directoryOf is where the hold of a name is read: the directory of a shared hold, else the
// name itself.
func directoryOf(name string) string {
	dir, base := splitPath(name)
	if m, ok := parseMember(base); !ok || m.seq < 0 || !m.shared() || dir == "/" {
		return name
	}
	if above, last := splitPath(dir); last == leasesName {
		return above
	}
	return dir
}

// Names of the two directories of a Curator semaphore.
const (
	leasesName = "leases"
	locksName  = "locks"
)

// splitPath splits a path behind its last slash: "/a/b" is "/a" and "b", "/a" is "/" and "a".
func splitPath(path string) (dir, base string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", strings.TrimPrefix(path, "/")
	}
	return path[:i], path[i+1:]
}

// join is the path of a child.
func join(dir, child string) string {
	if dir == "/" {
		return dir + child
	}
	return dir + "/" + child
}
