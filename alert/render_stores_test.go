package alert

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules"
)

// Notifications of locks of stores other than Redis, as the rules write them and an e-mail shows them.
func TestNotificationsOfOtherStores(t *testing.T) {
	t.Parallel()
	set, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := rules.New(nil, set, func(library string) locksteward.LibraryFacts {
		return locksteward.LibraryFacts{NoTTLByDesign: library == "liquibase"}
	})
	if err != nil {
		t.Fatal(err)
	}
	ago := func(d time.Duration) time.Time { return sampleTime.Add(-d) }
	lock := func(target, key, library, kind string, lifetime locksteward.Lifetime) locksteward.Lock {
		return locksteward.Lock{
			Observation: locksteward.Observation{
				Target: target, Key: key, Library: library, Type: kind, Lifetime: lifetime, At: sampleTime, TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt,
				Idle: -1, Kind: locksteward.KindLock, Class: class.Default, TokenDigest: "hmac-sha256:00", Count: 1, Waiters: -1,
			},
			History: locksteward.History{FirstSeen: ago(41 * time.Minute), LastSeen: sampleTime, Looks: 100},
		}
	}
	stranded := lock("billing-db", "advisory:billing:72707369", "prisma", "advisory", locksteward.LifetimeSession)
	stranded.Waiters = 3
	stranded.Session = &locksteward.Session{
		ID: "4711", User: "app", Addr: "10.2.3.4", Since: ago(time.Hour), State: locksteward.SessionIdle, StateSince: ago(41 * time.Minute), Locks: []string{"advisory:billing:1001"},
	}
	liquibase := lock("billing-db", "public.databasechangeloglock:1", "liquibase", "row", locksteward.LifetimePersistent)
	liquibase.Acquired, liquibase.Holder = ago(42*time.Minute), locksteward.Holder{Host: "deploy-7"}
	dead := liquibase
	dead.Absence = &locksteward.Absence{From: "10.2.3.4", Since: ago(40 * time.Minute), Looks: 90}
	etcd := lock("etcd", "/locks/nightly", "unknown", "key", locksteward.LifetimePersistent)
	znode := lock("zk", "/locks/orders", "kazoo", "persistent", locksteward.LifetimePersistent)
	znode.Waiters, znode.Holder = 2, locksteward.Holder{Host: "worker-7.example"}

	for name, sample := range map[string]struct {
		lock locksteward.Lock
		rule string
	}{
		"advisory": {stranded, "holder/stranded"}, "row": {liquibase, "ttl/none"}, "row-dead": {dead, "holder/dead"},
		"etcd": {etcd, "ttl/none"}, "znode": {znode, "ttl/none"},
	} {
		var finding locksteward.Finding
		for _, v := range engine.Explain(sample.lock) {
			if v.Rule == sample.rule && v.Result == rules.Fires {
				finding = *v.Finding
			}
		}
		if finding.Rule != sample.rule {
			t.Errorf("%s: %s does not fire", name, sample.rule)
			continue
		}
		finding.Status, finding.Since, finding.FiredAt = locksteward.StatusFiring, ago(time.Minute), sampleTime
		for _, lang := range []string{"en", "zh"} {
			p := Payload{Version: PayloadVersion, Lang: lang, Type: "findings.firing", ID: "msg_1", Timestamp: sampleTime, Status: "firing", Reason: ReasonNews, Findings: []PayloadFinding{eventOf(finding, 1, lang)}}
			writer{name: "ops", lang: lang, links: "https://locks.example", keyNames: KeyNamesFull}.complete(&p)
			page := renderer{lang: lang}.render(p)
			text := page.title + "\n\n" + page.plain()
			for _, foreign := range []string{"Redis", "SETNX", "PERSIST", "DEL ", "PTTL"} {
				if strings.Contains(text, foreign) {
					t.Errorf("%s.%s mentions %s", name, lang, foreign)
				}
			}
			golden(t, "stores/"+name+"."+lang+".txt", []byte(text))
		}
	}
}
