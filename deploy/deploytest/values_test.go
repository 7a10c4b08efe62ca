package deploytest

import (
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// everything switches on all that the chart has, with three replicas.
const everything = `
replicas: 3
image: {tag: v9.9.9}
config:
  targets:
    - name: orders
      url: rediss://redis.internal:6380/0
      username: scanner
      password_file: /run/secrets/redis/scanner
      release_credentials: {username: releaser, password_file: /run/secrets/redis/releaser}
    - name: sessions
      url: redis+sentinel://a.internal,b.internal:26380/mymaster
  alert:
    receivers:
      - {name: ops, kind: webhook, url_file: /run/secrets/hooks/url}
      - {name: am, kind: alertmanager, urls: ["http://am-0.monitoring:9093"], allow_private: true}
      - {name: mail, kind: email, server: "smtp.example.com:587", from: "l@example.com", to: ["o@example.com"]}
  console:
    proxy: {allow: [10.0.0.0/8]}
classFiles:
  orders.yaml: {classes: [{class: orders, match: ["lock:order:*"], team: checkout}]}
secretMounts:
  - {name: redis, secretName: locksteward-redis}
  - {name: hooks, secretName: locksteward-hooks}
store:
  type: postgres
  postgres:
    dsn: postgres://locksteward@db.internal:5433/locksteward?sslmode=verify-full
    passwordSecret: {name: locksteward-db, key: password}
  auditKeySecret: {name: locksteward-audit, key: audit.pem}
console:
  usersSecret: {name: locksteward-users, key: users.yaml}
  tlsSecret: locksteward-tls
  ingress: {enabled: true, className: nginx, host: locks.example.com, tlsSecret: locks-example-com}
cluster: {lease: 3s}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, watchdog: true, recording: true}
dashboards: {enabled: true}
`

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := mustRender(t, "")
	set := get[appsv1.StatefulSet](t, o, "StatefulSet/locksteward")
	if len(set.Spec.VolumeClaimTemplates) != 1 || *set.Spec.Replicas != 1 {
		t.Errorf("a store on a file is one replica with a claim: %d claims, %d replicas", len(set.Spec.VolumeClaimTemplates), *set.Spec.Replicas)
	}
	for _, id := range []string{"Service/locksteward-console", "PodDisruptionBudget/locksteward", "Ingress/locksteward", "ServiceMonitor/locksteward", "PrometheusRule/locksteward-alerts", "ConfigMap/locksteward-dashboards"} {
		if o.all[id] != nil {
			t.Errorf("%s is there by default", id)
		}
	}
	if svc := get[corev1.Service](t, o, "Service/locksteward-metrics"); !svc.Spec.PublishNotReadyAddresses || svc.Name != set.Spec.ServiceName {
		t.Errorf("metrics service %+v does not fit the set's %q", svc.Spec, set.Spec.ServiceName)
	}
	if !strings.Contains(o.config(t), "127.0.0.1:10122") || !strings.Contains(o.notes, "port-forward statefulset/locksteward 10122") {
		t.Errorf("without users the console is not on loopback, or the notes do not say how it is reached:\n%s\n%s", o.config(t), o.notes)
	}
	dir := t.TempDir()
	checkConfig(t, dir, o.config(t))
}

func TestPodIsHardened(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"", everything} {
		pod := mustRender(t, values).pod(t).Spec
		c := pod.Containers[0]
		switch s := c.SecurityContext; {
		case *pod.AutomountServiceAccountToken, !*pod.SecurityContext.RunAsNonRoot, *pod.SecurityContext.RunAsUser == 0,
			pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault,
			*s.AllowPrivilegeEscalation, !*s.ReadOnlyRootFilesystem, s.Capabilities.Drop[0] != "ALL":
			t.Errorf("not as the restricted Pod Security Standard wants it: %+v %+v", pod.SecurityContext, s)
		}
		for _, v := range pod.Volumes {
			if v.Secret != nil && *v.Secret.DefaultMode != 0o440 {
				t.Errorf("secret volume %s has mode %o", v.Name, *v.Secret.DefaultMode)
			}
		}
		if c.StartupProbe == nil || c.LivenessProbe.HTTPGet.Path != "/-/healthy" || c.ReadinessProbe.HTTPGet.Path != "/-/ready" {
			t.Errorf("probes: %+v %+v %+v", c.StartupProbe, c.LivenessProbe, c.ReadinessProbe)
		}
		if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Error("no bounds of memory")
		}
	}
}

func TestEverything(t *testing.T) {
	t.Parallel()
	o := mustRender(t, everything)
	d := get[appsv1.Deployment](t, o, "Deployment/locksteward")
	if *d.Spec.Replicas != 3 || len(d.Spec.Template.Spec.TopologySpreadConstraints) != 1 {
		t.Errorf("replicas are not spread: %+v", d.Spec)
	}
	if b := get[policyv1.PodDisruptionBudget](t, o, "PodDisruptionBudget/locksteward"); b.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("budget %+v", b.Spec)
	}
	ingress := get[networkingv1.Ingress](t, o, "Ingress/locksteward")
	back := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if svc := get[corev1.Service](t, o, "Service/"+back.Name); svc.Spec.Ports[0].Name != back.Port.Name {
		t.Errorf("the ingress leads to port %q of %+v", back.Port.Name, svc.Spec.Ports)
	}
	monitor := get[monitoringv1.ServiceMonitor](t, o, "ServiceMonitor/locksteward")
	for k, v := range monitor.Spec.Selector.MatchLabels {
		if got := get[corev1.Service](t, o, "Service/locksteward-metrics").Labels[k]; got != v {
			t.Errorf("the ServiceMonitor wants %s=%s, the metrics service has %q", k, v, got)
		}
		if k == "locksteward.dev/service" && get[corev1.Service](t, o, "Service/locksteward-console").Labels[k] == v {
			t.Error("the ServiceMonitor selects the console as well")
		}
	}
	if o.all["PrometheusRule/locksteward-alerts"] != nil {
		t.Error("the agent has receivers, and Prometheus reports the same locks")
	}
	for _, name := range []string{"alerts-agent", "alerts-watchdog", "recording"} {
		if r := get[monitoringv1.PrometheusRule](t, o, "PrometheusRule/locksteward-"+name); len(r.Spec.Groups) == 0 || len(r.Spec.Groups[0].Rules) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if n := len(get[corev1.ConfigMap](t, o, "ConfigMap/locksteward-dashboards").Data); n != 3 {
		t.Errorf("%d dashboards", n)
	}
	env := map[string]string{}
	for _, e := range o.pod(t).Spec.Containers[0].Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil {
			env[e.Name] = e.ValueFrom.FieldRef.FieldPath
		}
	}
	if env["POD_IP"] != "status.podIP" || env["LOCKSTEWARD_CLUSTER_ADVERTISE"] != "$(POD_IP):10123" || env["LOCKSTEWARD_CLUSTER_LISTEN"] != ":10123" {
		t.Errorf("replicas cannot find each other: %v", env)
	}
	if !strings.Contains(o.notes, "https://locks.example.com/") {
		t.Errorf("notes: %s", o.notes)
	}
}

func TestLockAlertsWithoutReceivers(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{
		"prometheusRule: {enabled: true}":                                     true,
		"prometheusRule: {enabled: true, locks: never}":                       false,
		everything + "\n":                                                     false,
		strings.Replace(everything, "watchdog", "locks: always, watchdog", 1): true,
	} {
		if _, got := mustRender(t, values).all["PrometheusRule/locksteward-alerts"]; got != want {
			t.Errorf("alerts about locks: %v, want %v with\n%s", got, want, values)
		}
	}
}

// A listener with TLS or a login is asked by the program itself.
func TestProbesOfAListenerWithTLS(t *testing.T) {
	t.Parallel()
	o := mustRender(t, `
metrics: {webConfigSecret: {name: web, key: web.yaml, tls: true}}
serviceMonitor: {enabled: true, tlsConfig: {insecureSkipVerify: true}}
`)
	c := o.pod(t).Spec.Containers[0]
	if got := strings.Join(c.ReadinessProbe.Exec.Command, " "); got != "/usr/bin/locksteward health --url=https://127.0.0.1:10121 --ready" {
		t.Errorf("readiness asks %q", got)
	}
	if got := strings.Join(c.LivenessProbe.Exec.Command, " "); got != "/usr/bin/locksteward health --url=https://127.0.0.1:10121" {
		t.Errorf("liveness asks %q", got)
	}
	if m := get[monitoringv1.ServiceMonitor](t, o, "ServiceMonitor/locksteward"); m.Spec.Endpoints[0].Scheme.String() != "https" {
		t.Errorf("Prometheus scrapes by %v", m.Spec.Endpoints[0].Scheme)
	}
	o = mustRender(t, `metrics: {webConfigSecret: {name: web, key: web.yaml, login: true}}`)
	if got := strings.Join(o.pod(t).Spec.Containers[0].ReadinessProbe.Exec.Command, " "); strings.Contains(got, "--ready") {
		t.Errorf("readiness asks %q, which a login refuses", got)
	}
}

func TestStoreOnAVolume(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]func(v corev1.Volume) bool{
		"store: {sqlite: {persistence: {enabled: false}}}": func(v corev1.Volume) bool { return v.EmptyDir != nil },
		"store: {sqlite: {persistence: {existingClaim: old}}}": func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "old"
		},
		everything: func(v corev1.Volume) bool { return v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil },
	} {
		o := mustRender(t, values)
		found := false
		for _, v := range o.pod(t).Spec.Volumes {
			found = found || v.Name == "data" && want(v)
		}
		if !found {
			t.Errorf("volumes %+v with\n%s", o.pod(t).Spec.Volumes, values)
		}
		if set, ok := o.all["StatefulSet/locksteward"].(*appsv1.StatefulSet); ok && len(set.Spec.VolumeClaimTemplates) != 0 {
			t.Errorf("a claim besides, with\n%s", values)
		}
	}
	if o := mustRender(t, "store: {sqlite: {persistence: {enabled: false}}}"); !strings.Contains(o.notes, "WARNING") {
		t.Errorf("notes do not warn: %s", o.notes)
	}
}

// What cannot work is refused with a sentence, before anything is installed.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, values, want string }{
		{"several on a file", "replicas: 3", "a SQLite file belongs to one agent; set store.type to postgres"},
		{"postgres without a database", "store: {type: postgres}", "store.postgres.dsn: empty"},
		{"a database without postgres", "store: {postgres: {dsn: 'postgres://l@db/l'}}", "while store.type is sqlite"},
		{"a password in the store", "store: {type: postgres, postgres: {dsn: 'postgres://l:hunter2@db/l'}}", "has a password in it"},
		{"a password in a target", "config: {targets: [{name: a, url: 'redis://:hunter2@r:6379'}]}", "config.targets[0].url: has a password in it"},
		{"no targets", "config: {targets: []}", "config.targets: empty"},
		{"what the chart sets", "config: {store: {dsn: 'sqlite:x'}}", "config.store.dsn: the chart sets it; use store.type"},
		{"the console's address", "config: {console: {listen: ':10122'}}", "use console.usersSecret"},
		{"the cluster", "config: {cluster: {advertise: 'http://x:1'}}", "config.cluster: the chart sets it"},
		{"a secret that is not mounted", "config: {targets: [{name: a, url: 'redis://r', password_file: /run/secrets/redis/p}]}", "no entry has the name redis; add {name: redis"},
		{"a secret in a class file", "classFiles: {a.yaml: {classes: [{class: a, match: [x], runbook_url: /run/secrets/b/c}]}}", "add {name: b"},
		{"a mount twice", "secretMounts: [{name: a, secretName: s1}, {name: a, secretName: s2}]", "secretMounts[1].name: a is there twice"},
		{"an ingress to nobody", "console: {ingress: {enabled: true, host: l.example.com}}", "the console has no users"},
		{"an ingress without a name", "console: {ingress: {enabled: true}}", "console.ingress.host: empty"},
		{"TLS for nobody", "console: {tlsSecret: x}", "console.tlsSecret: the console has no users"},
		{"an unknown value", "replicaCount: 3", "replicaCount"},
		{"an unknown value below", "console: {enabled: true}", "enabled"},
		{"a wrong type", "replicas: three", "replicas"},
		{"no replica", "replicas: 0", "replicas"},
		{"an unknown store", "store: {type: mysql}", "type"},
		{"a boolean in place of a word", "prometheusRule: {enabled: true, locks: yes}", "locks"},
		{"a digest that is none", "image: {digest: latest}", "digest"},
		{"a target without URL", "config: {targets: [{name: a}]}", "url"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := render(t, tc.values)
			if err == nil {
				t.Fatal("is taken")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("refused without %q: %v", tc.want, err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is in the message: %v", err)
			}
		})
	}
}
