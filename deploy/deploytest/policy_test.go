package deploytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// allowed lists the ports that the policy lets the agent connect to.
func allowed(t *testing.T, o objects) []string {
	t.Helper()
	var out []string
	for _, rule := range get[networkingv1.NetworkPolicy](t, o, "NetworkPolicy/locksteward").Spec.Egress {
		if len(rule.Ports) == 0 {
			t.Error("a rule without ports lets everything out")
		}
		for _, p := range rule.Ports {
			out = append(out, fmt.Sprintf("%s/%d", *p.Protocol, p.Port.IntValue()))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// The policy lets the agent reach what its configuration names, and nothing else.
func TestNetworkPolicyFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	const dns = "TCP/53 UDP/53"
	target := func(url string) string { return "config: {targets: [{name: a, url: '" + url + "'}]}" }
	for _, tc := range []struct{ values, want string }{
		{"", "TCP/6379"},
		{target("redis://r"), "TCP/6379"},
		{target("rediss://user@r:6390/3"), "TCP/6390"},
		{target("redis://[2001:db8::1]:6391"), "TCP/6391"},
		{target("redis+cluster://a:7000,b:7001,c"), "TCP/6379 TCP/7000 TCP/7001"},
		{target("rediss+sentinel://a,b:26380/m"), "TCP/26379 TCP/26380 TCP/6379"},
		{target("unix:///run/redis.sock"), ""},
		{target("redis://r:7000") + "\nnetworkPolicy: {extraPorts: [7443]}", "TCP/7000 TCP/7443"},
		{"config: {targets: [{name: a, url: 'redis+cluster://a:7000', addr_map: {'10.0.0.1:7000': 'proxy:17000'}}]}", "TCP/17000 TCP/7000"},
		{"config: {alert: {receivers: [{name: a, kind: webhook, url: 'https://hooks.example.com/x'}]}}", "TCP/443 TCP/6379"},
		{"config: {alert: {receivers: [{name: a, kind: webhook, url: 'http://hooks:8080/x', allow_private: true}]}}", "TCP/6379 TCP/8080"},
		{"config: {alert: {receivers: [{name: a, kind: pagerduty, routing_key_file: /run/secrets/p/k}]}}\nsecretMounts: [{name: p, secretName: p}]", "TCP/443 TCP/6379"},
		{"config: {alert: {heartbeat: {webhook: {url_file: /run/secrets/p/u}}}}\nsecretMounts: [{name: p, secretName: p}]", "TCP/443 TCP/6379"},
		{"config: {audit: {sinks: [{name: a, syslog: 'tls://siem'}, {name: b, syslog: 'udp://siem:1514'}]}}", "TCP/6379 TCP/6514 UDP/1514"},
		{"config: {console: {oidc: {issuer: 'https://id.example.com:8443/realm'}}}", "TCP/6379 TCP/8443"},
		{"config: {alert: {console_url: 'https://locks:9999'}, classes: [{class: a, match: [b], runbook_url: 'https://wiki:9998/x'}]}", "TCP/6379"},
		{"store: {type: postgres, postgres: {dsn: 'postgres://l@db-a:5433,db-b/l'}}", "TCP/5432 TCP/5433 TCP/6379"},
		{everything, "TCP/26379 TCP/26380 TCP/443 TCP/5433 TCP/587 TCP/6379 TCP/6380 TCP/9093"},
	} {
		want := strings.Fields(dns + " " + tc.want)
		if strings.Contains(tc.values, "type: postgres") {
			want = append(want, "TCP/10123") // to other replicas
		}
		slices.Sort(want)
		if got := allowed(t, mustRender(t, tc.values)); !slices.Equal(got, want) {
			t.Errorf("lets out to %v, want %v with\n%s", got, want, tc.values)
		}
	}
}

// What comes in is the ports that the pod listens on, from those who are named.
func TestNetworkPolicyLetsIn(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"", everything, "networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}"} {
		o := mustRender(t, values)
		var listens, lets []string
		for _, p := range o.pod(t).Spec.Containers[0].Ports {
			listens = append(listens, p.Name)
		}
		policy := get[networkingv1.NetworkPolicy](t, o, "NetworkPolicy/locksteward")
		for _, rule := range policy.Spec.Ingress {
			for _, p := range rule.Ports {
				lets = append(lets, p.Port.StrVal)
			}
		}
		slices.Sort(lets)
		if slices.Sort(listens); !slices.Equal(slices.Compact(lets), listens) {
			t.Errorf("listens on %v, lets in to %v", listens, lets)
		}
		for k, v := range policy.Spec.PodSelector.MatchLabels {
			if o.pod(t).Labels[k] != v {
				t.Errorf("the policy is for %s=%s, the pod has %q", k, v, o.pod(t).Labels[k])
			}
		}
		if from := policy.Spec.Ingress[0].From; strings.Contains(values, "metricsFrom") != (len(from) == 1) {
			t.Errorf("metrics from %v", from)
		}
		svc := get[corev1.Service](t, o, "Service/locksteward-metrics")
		for k, v := range svc.Spec.Selector {
			if o.pod(t).Labels[k] != v {
				t.Errorf("the service selects %s=%s, the pod has %q", k, v, o.pod(t).Labels[k])
			}
		}
	}
	if o := mustRender(t, "networkPolicy: {enabled: false}"); o.all["NetworkPolicy/locksteward"] != nil {
		t.Error("a policy in spite of enabled: false")
	}
}
