package deploytest

import (
	"path"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var inside = regexp.MustCompile(`/run/(?:secrets|locksteward)/[^"'\s]+`)

// Each file that the configuration names lies in a mounted Secret, and with the
// files in place the program takes the configuration.
func TestConfigurationFindsItsFiles(t *testing.T) {
	t.Parallel()
	o := mustRender(t, everything)
	spec := o.pod(t).Spec
	mounted := map[string]corev1.Volume{}
	for _, m := range spec.Containers[0].VolumeMounts {
		for _, v := range spec.Volumes {
			if v.Name == m.Name {
				mounted[m.MountPath] = v
			}
		}
		if mounted[m.MountPath].Name == "" {
			t.Errorf("%s mounts %s, which is no volume", m.MountPath, m.Name)
		}
	}
	dir := t.TempDir()
	files := inside.FindAllString(o.config(t), -1)
	if len(files) == 0 {
		t.Fatalf("no file named in\n%s", o.config(t))
	}
	for _, file := range files {
		if mounted[path.Dir(file)].Secret == nil {
			t.Errorf("%s is in no mounted Secret", file)
		}
		put(t, dir, file, "hunter2-hunter2-hunter2-hunter2-hunter2\n")
	}
	users, err := locksteward(t, nil, "users", "add", "ana", "--role", "viewer", "--users-file", path.Join(dir, "made.yaml"))
	if err != nil {
		t.Fatalf("%v\n%s", err, users)
	}
	put(t, dir, "/run/locksteward/users/users.yaml", string(must(t, path.Join(dir, "made.yaml"))))
	put(t, dir, "/run/secrets/hooks/url", "https://hooks.example.com/x\n")
	key := path.Join(dir, "key.pem")
	if said, err := command(t, "openssl", "genpkey", "-algorithm", "ed25519", "-out", key); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	put(t, dir, "/run/locksteward/audit/audit.pem", string(must(t, key)))
	cert, private := certificate(t)
	put(t, dir, "/run/locksteward/console-tls/tls.crt", cert)
	put(t, dir, "/run/locksteward/console-tls/tls.key", private)
	// The files of classes.d come in the same ConfigMap.
	config := get[corev1.ConfigMap](t, o, "ConfigMap/locksteward")
	for _, v := range spec.Volumes {
		if v.Name != "config" {
			continue
		}
		for _, item := range v.ConfigMap.Items {
			text, ok := config.Data[item.Key]
			if !ok {
				t.Errorf("the pod wants %s of the ConfigMap, which has no such key", item.Key)
			}
			if strings.HasPrefix(item.Path, "classes.d/") {
				put(t, dir, item.Path, text)
			}
		}
	}
	var env []string
	for _, e := range spec.Containers[0].Env {
		if e.ValueFrom == nil {
			env = append(env, e.Name+"="+strings.ReplaceAll(e.Value, "$(POD_IP)", "10.0.0.7"))
		}
	}
	checkConfig(t, dir, o.config(t), env...)
}
