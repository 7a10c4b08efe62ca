package agent_test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testdns"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// Targets of a file: what it says is watched without a reload, and people hear of the
// end of what was found on a target that goes.
func TestTargetsOfAFileAreFollowed(t *testing.T) {
	t.Parallel()
	first, second := testredis.Start(t), testredis.Start(t)
	set(t, first.Client(t), "lock:order:1", token, 0)
	set(t, second.Client(t), "lock:order:2", token, 0)
	ear := newEar(t)
	b := layBed(t, "", "")
	file := filepath.Join(b.dir, "more.yaml")
	entry := func(name string, srv *testredis.Server) string {
		return fmt.Sprintf("{name: %s, url: '%s', schedule: '@every 1s'}", name, srv.URL())
	}
	put(t, file, "targets: []\n")
	b.write("targets_from: {files: [more.yaml]}\n" + orders + receivers("ops", ear.url))
	b.start()
	b.awaitMetric(`locksteward_target_source_up{source="` + file + `"} 1`)
	if n := len(b.agent.Backend().Targets()); n != 0 {
		t.Fatalf("%d targets", n)
	}
	put(t, file, "targets:\n  - "+entry("one", first)+"\n")
	if got := ear.await(1)[0].finding(); got != "lock:order:1 firing" {
		t.Errorf("reported %s", got)
	}
	put(t, file, "targets:\n  - "+entry("one", first)+"\n  - "+entry("two", second)+"\n")
	if got := ear.await(2)[1].finding(); got != "lock:order:2 firing" {
		t.Errorf("reported %s", got)
	}
	// What is wrong takes nothing away, and is reported: a name that would mean another
	// server, and half a file.
	put(t, file, "targets:\n  - "+entry("one", second)+"\n  - "+entry("two", second)+"\n")
	b.awaitMetric(`locksteward_target_source_up{source="` + file + `"} 0`)
	put(t, file, "targets:\n  - "+entry("one", first)+"\n  - {name: t")
	testredis.Eventually(t, within, func() bool {
		return b.logs.FilterMessageSnippet("source of targets is not followed").Len() == 2
	}, "it is not said why the file is not followed")
	if got := b.agent.Backend().Targets(); len(got) != 2 || !got[0].Up || !got[1].Up {
		t.Errorf("targets %+v", got)
	}
	put(t, file, "targets:\n  - "+entry("two", second)+"\n")
	if got := ear.await(3)[2].finding(); got != "lock:order:1 resolved" {
		t.Errorf("reported %s", got)
	}
	b.awaitMetric(`locksteward_target_source_up{source="` + file + `"} 1`)
	if strings.Contains(b.metrics(), `target="one"`) {
		t.Error("the metrics still report a target that is gone")
	}
	list, err := b.ana.Audit(t.Context(), 100)
	var reasons []string
	for _, e := range list.Entries {
		if e.Action == "targets.change" {
			reasons = append(reasons, strings.TrimPrefix(e.Reason, file))
		}
	}
	want := []string{" has other targets now; removed: one", " has other targets now; added: two", " has other targets now; added: one"}
	if err != nil || !slices.Equal(reasons, want) {
		t.Errorf("the trail has %q, %v", reasons, err)
	}
}

// A DNS name leads to targets, also for an agent that starts while the DNS is away.
func TestTargetsOfTheDNSAreFollowed(t *testing.T) {
	t.Parallel()
	srv, dns := testredis.Start(t), testdns.Start(t)
	set(t, srv.Client(t), "lock:order:1", token, 0)
	ear := newEar(t)
	const record = "_redis._tcp.orders.example.org"
	b := newBed(t, orders+receivers("ops", ear.url)+"\ntargets_from: {dns: '"+dns.Addr()+"', srv: [{record: "+record+
		", every: 1s, target: {name: 'orders-{port}', url: 'redis://{host}:{port}', schedule: '@every 1s'}}]}\n")
	ready := "http://" + b.agent.MetricsAddr().String() + "/-/ready"
	testredis.Eventually(t, within, func() bool {
		return strings.Contains(get(ready), "targets_from.srv[0]: the targets of "+record+" are not known yet") && strings.Contains(get(ready), "no such host")
	}, "an agent that knows no targets says that it is ready")
	_, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	dns.Set(record, net.SRV{Target: "localhost.", Port: uint16(n)})
	if got := ear.await(1)[0].finding(); got != "lock:order:1 firing" {
		t.Errorf("reported %s", got)
	}
	testredis.Eventually(t, within, func() bool { return strings.Contains(get(ready), "ready") && !strings.Contains(get(ready), "known") }, "not ready")

	dns.Set(record)
	b.stop()
	b.start()
	testredis.Eventually(t, within, func() bool { l := b.agent.Backend().Targets(); return len(l) == 1 && l[0].Up }, "the target is forgotten with the DNS away")
	b.awaitMetric(`locksteward_target_source_up{source="` + record + `"} 0`)
	srv.Client(t).Del(t.Context(), "lock:order:1")
	if got := ear.await(2)[1].finding(); got != "lock:order:1 resolved" {
		t.Errorf("reported %s", got)
	}
}

// Replicas each read the file; a new target is watched by one of them.
func TestReplicasFollowAFile(t *testing.T) {
	t.Parallel()
	dsn := testpg.Start(t).DSN()
	one, two := testredis.Start(t), testredis.Start(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "targets.yaml")
	put(t, file, fmt.Sprintf("targets: [{name: one, url: '%s'}]\n", one.URL()))
	beds := newBeds(t, 2, "targets_from: {files: ['"+file+"']}\n"+orders, dsn)
	put(t, file, fmt.Sprintf("targets: [{name: one, url: '%s'}, {name: two, url: '%s'}]\n", one.URL(), two.URL()))
	for _, b := range beds {
		testredis.Eventually(t, within, func() bool {
			l := b.agent.Backend().Targets()
			return len(l) == 2 && l[0].Up && l[1].Up && l[0].Replica != "" && l[1].Replica != ""
		}, "a new target is not known on each replica")
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	testcert.Put(t, file, []byte(text)) // in one step: who follows the file must not read half of it
}
