package deploytest

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

var chartDir = filepath.Join(root, "deploy", "helm", "locksteward")

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// render is `helm template NAME` with values, in Kubernetes' newest version; files by
// their names.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	c := loadChart(t)
	options := chartutil.ReleaseOptions{Name: "locksteward", Namespace: "locks", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	out, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range out {
		files[strings.TrimPrefix(name, "locksteward/templates/")] = text
	}
	return files, nil
}

// objects are the rendered ones, by "Kind/name", and the notes.
type objects struct {
	all   map[string]any
	notes string
	text  map[string]string
}

// kinds are the types that the chart may render.
var kinds = map[string]func() any{
	"apps/v1/StatefulSet":                     func() any { return new(appsv1.StatefulSet) },
	"apps/v1/Deployment":                      func() any { return new(appsv1.Deployment) },
	"v1/ConfigMap":                            func() any { return new(corev1.ConfigMap) },
	"v1/Service":                              func() any { return new(corev1.Service) },
	"v1/ServiceAccount":                       func() any { return new(corev1.ServiceAccount) },
	"v1/Pod":                                  func() any { return new(corev1.Pod) },
	"networking.k8s.io/v1/Ingress":            func() any { return new(networkingv1.Ingress) },
	"networking.k8s.io/v1/NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"policy/v1/PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any { return new(monitoringv1.ServiceMonitor) },
	"monitoring.coreos.com/v1/PrometheusRule": func() any { return new(monitoringv1.PrometheusRule) },
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

// mustRender renders and decodes every object strictly: an unknown field, a wrong
// type or a key that is there twice fails the test.
func mustRender(t *testing.T, values string) objects {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatalf("render: %v\n%s", err, values)
	}
	out := objects{all: map[string]any{}, notes: files["NOTES.txt"], text: map[string]string{}}
	delete(files, "NOTES.txt")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, doc := range separator.Split(files[name], -1) {
			if strings.TrimSpace(doc) == "" {
				continue
			}
			var head struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name, Namespace string
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			make, known := kinds[head.APIVersion+"/"+head.Kind]
			if !known {
				t.Fatalf("%s: renders an %s %s, which no test knows", name, head.APIVersion, head.Kind)
			}
			if head.Metadata.Name == "" || head.Metadata.Namespace != "locks" {
				t.Errorf("%s: %s is %q in namespace %q", name, head.Kind, head.Metadata.Name, head.Metadata.Namespace)
			}
			object := make()
			if err := yaml.UnmarshalStrict([]byte(doc), object); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			id := head.Kind + "/" + head.Metadata.Name
			if _, twice := out.all[id]; twice {
				t.Errorf("%s: %s is there twice", name, id)
			}
			out.all[id], out.text[id] = object, strings.TrimSpace(doc)+"\n"
		}
	}
	return out
}

// get returns the one object of a name, or fails.
func get[T any](t *testing.T, o objects, id string) *T {
	t.Helper()
	v, ok := o.all[id].(*T)
	if !ok {
		t.Fatalf("no %s among %v", id, slices.Sorted(maps.Keys(o.all)))
	}
	return v
}

// pod is the agent's template, whatever makes pods of it.
func (o objects) pod(t *testing.T) *corev1.PodTemplateSpec {
	t.Helper()
	if d, ok := o.all["Deployment/locksteward"].(*appsv1.Deployment); ok {
		return &d.Spec.Template
	}
	return &get[appsv1.StatefulSet](t, o, "StatefulSet/locksteward").Spec.Template
}

// config is locksteward.yaml of the ConfigMap.
func (o objects) config(t *testing.T) string {
	t.Helper()
	return get[corev1.ConfigMap](t, o, "ConfigMap/locksteward").Data["locksteward.yaml"]
}

// manifest is all objects as one file, in the order in which they are to be made.
func (o objects) manifest() string {
	first := []string{"ServiceAccount", "ConfigMap", "Service", "NetworkPolicy", "PodDisruptionBudget", "StatefulSet", "Deployment"}
	rank := func(id string) int {
		kind, _, _ := strings.Cut(id, "/")
		return slices.Index(first, kind)
	}
	ids := slices.SortedFunc(maps.Keys(o.all), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	var b strings.Builder
	for _, id := range ids {
		if rank(id) >= 0 {
			fmt.Fprintf(&b, "---\n%s", o.text[id])
		}
	}
	return b.String()
}
