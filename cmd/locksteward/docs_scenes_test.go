package main

import (
	"testing"
)

// docScene is where the commands of a page are run, and what the page presumes.
type docScene struct {
	page string
	// part picks the blocks that have this text; without it all that no scene before
	// this one picks.
	part string
	// spans is for our own commands within sentences, which other scenes pass over.
	spans bool
	// swap are names of the reader's, and what they are here.
	swap []string
	// first runs before the first command; before and after run around the commands
	// that begin with their keys.
	first         deed
	before, after step
	// typed is for the commands that begin so and ask at a terminal: what they show, and
	// the keys that are pressed then.
	typed map[string][]string
}

// deed is a method of docBed.
type deed = func(*docBed, *testing.T)

// step are deeds around commands.
type step = map[string]deed

// docGroup are scenes on one bed, one after the other.
type docGroup struct {
	name   string
	bed    func(*testing.T) *docBed
	scenes []docScene
}

var docGroups = []docGroup{
	{"agent", newAgentBed, []docScene{
		{page: "README.md", part: "locksteward release request", before: step{"locksteward release request": (*docBed).withNewUsers}},
		{page: "README.zh.md", part: "locksteward release request", first: (*docBed).onlyPeople, before: step{"locksteward release request": (*docBed).withNewUsers}},
		{
			page: "docs/users.md", swap: []string{`"$(pidof locksteward)"`, "$AGENT_PID"},
			first: (*docBed).onlyPeople,
			typed: map[string][]string{"locksteward users passwd": {"New password", "correct horse battery\n", "Once more", "correct horse battery\n"}},
			after: step{"kill -HUP": (*docBed).anaIsKnown},
		},
		{page: "docs/release.md", part: "locksteward release show", first: (*docBed).redissonOrder42},
		{
			page: "docs/release.md", part: "locksteward unlock", first: (*docBed).condition,
			swap:  []string{"string.5f0c….9a41….-1", `"$CONDITION"`},
			typed: map[string][]string{"locksteward unlock": {"(yes/no)", "yes\n"}},
		},
		{
			page: "docs/release.md", part: "break-glass KEY", spans: true, first: (*docBed).lockOrder42,
			swap: []string{"KEY", "lock:order:42", "…", "INC-9"},
		},
		{
			page: "docs/silences.md", swap: []string{"2026-11-30T08:00:00Z", "$(date -u -d '8 days' +%FT%TZ)", "9bfb12c8accf2ecd8c061c725bb91264", "$FINGERPRINT"},
		},
		{page: "docs/webhook.md", swap: []string{"msg_…", "$DEAD"}},
		{
			page: "docs/audit.md", swap: []string{"/mnt/worm", "worm"},
			first: (*docBed).worm, before: step{"printf %s": (*docBed).oneLine},
		},
		{page: "docs/upgrading.md", first: (*docBed).lastVersion},
		{
			page: "docs/store.md",
			// "Stop the agent first", and "Then start the agent".
			before: step{"rm -f": (*docBed).stopAgent, "locksteward store repair": (*docBed).stopAgent},
			after:  step{"cp ": (*docBed).onAgain, "locksteward store repair": (*docBed).onAgain},
		},
	}},
	{"runbooks", newAgentBed, []docScene{
		runbook("BudgetPaused", (*docBed).paused),
		runbook("AgentDown"),
		runbook("Watchdog"),
		runbook("WatchMissed"),
		runbook("ContentionHigh"),
		runbook("Deadlock"),
		runbook("DeadlockRisk"),
		runbook("Finding"),
		runbook("HolderDead"),
		runbook("ReceiverFailing"),
		runbook("TemplateFailing"),
	}},
	{"tls", newTLSBed, []docScene{
		{page: "docs/tls.md", swap: []string{"locks.example.org:10122", "$AGENT"}},
		{page: "docs/runbooks/LockstewardCertificateEnds.md", swap: []string{"HOST:PORT", "$AGENT", "FILE", "cert.pem", "-connect ", "-cert me.pem -key me.key -connect "}},
	}},
	{"rights", newPlainBed, []docScene{
		{page: "docs/acl.md", part: "users.acl", first: (*docBed).rights},
		{page: "docs/doctor.md", first: (*docBed).rightsInUse},
		{page: "docs/acl.md", part: "--sentinels", first: (*docBed).sentinel, swap: []string{"-h sentinel-1 -p 26379", `-p "$SENTINEL_PORT"`}},
		{page: "docs/quickstart.md", part: "redis-cli "},
	}},
	{"looks", newPlainBed, []docScene{
		{
			page: "README.md", part: "locksteward init", swap: soon, first: (*docBed).batchLocks,
			typed: takeAll, after: step{"locksteward run": (*docBed).untilReady},
		},
		{
			page: "README.zh.md", part: "locksteward init", swap: soon, first: (*docBed).noConfiguration,
			typed: takeAll, after: step{"locksteward run": (*docBed).untilReady},
		},
		{page: "docs/recording.md", swap: []string{"30s", "1s"}},
		{page: "docs/cli.md", swap: []string{"5m", "1s"}, first: (*docBed).noConfiguration},
	}},
	{"machine", newPlainBed, []docScene{
		{
			page: "docs/deploy.md", part: "install -m 755", first: (*docBed).archive, typed: takeAll,
			swap: append([]string{"/usr/", "root/usr/", "/etc/", "root/etc/", "root:locksteward", `"$(id -u):$(id -g)"`}, soon...),
		},
		{page: "docs/deploy.md", swap: []string{"/var/lib/locksteward", "."}},
		{page: "README.md", part: "secrets.sh", first: (*docBed).archive},
		{page: "README.zh.md", part: "secrets.sh"},
		{page: "docs/acl.md", part: "openssl rand"},
		{page: "docs/metrics.md", swap: []string{"KEY", "lock:order:42"}},
	}},
	{"demo", newPlainBed, []docScene{
		{page: "docs/demo.md", typed: map[string][]string{"locksteward demo  ": firstFinding}},
	}},
	{"demo from the sources", newPlainBed, []docScene{
		{page: "README.md", part: "go run ./cmd/locksteward", swap: []string{"go run ./cmd/locksteward", "locksteward"}, typed: fromSources},
		{page: "README.zh.md", part: "go run ./cmd/locksteward", swap: []string{"go run ./cmd/locksteward", "locksteward"}, typed: fromSources},
	}},
}

var (
	// soon is what makes init look for a second in the place of half a minute.
	soon = []string{"locksteward init ", "locksteward init --observe 1s "}
	// takeAll answers init.
	takeAll = map[string][]string{"locksteward init": {"take it?", "a\n"}}
	// firstFinding looks at the demo until it shows one, and presses Ctrl-C. A rule's
	// name would not do: the demo says from the start which are still to come.
	firstFinding = []string{"critical", "\x03"}
	fromSources  = map[string][]string{"go run ./cmd/locksteward demo ": firstFinding}
)

// stuckOfRunbooks are the locks that the pages about alerts speak of.
var stuckOfRunbooks = []string{"Deadlock", "DeadlockRisk", "Finding", "HolderDead"}

// runbook is the scene of a page about an alert.
func runbook(name string, first ...deed) docScene {
	key := "lock:order:" + name
	return docScene{
		page: "docs/runbooks/Locksteward" + name + ".md",
		swap: []string{
			"KEY", key, "approve ID", "approve r-000000000000", "CLASS", "orders", "RULE", "ttl/none", "FILE", "locksteward.yaml",
			"RECEIVER", "chat", "target=NAME", "target=orders", "HOST:10121", "127.0.0.1:10121",
		},
		first: append(first, (*docBed).nothing)[0],
	}
}
