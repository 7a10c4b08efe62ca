package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// exposure is the most that `systemd-analyze security` may find open: 0 is nothing,
// 10 everything. What is left is the network, without which the agent sees nothing.
const exposure = 1.3

// unit is the shipped file with the program's place on this machine, and its path.
func unit(t *testing.T) (text, file string) {
	t.Helper()
	text = string(must(t, filepath.Join(root, "deploy/systemd/locksteward.service")))
	file = put(t, t.TempDir(), "locksteward.service", strings.ReplaceAll(text, "/usr/bin/locksteward", binary(t)))
	return text, file
}

func TestUnitVerifies(t *testing.T) {
	t.Parallel()
	tool := lookPath(t, "systemd-analyze")
	_, file := unit(t)
	put(t, filepath.Dir(file), "locksteward.service.d/credentials.conf", string(must(t, filepath.Join(root, "deploy/systemd/credentials.conf"))))
	said, err := exec.CommandContext(t.Context(), tool, "--man=no", "verify", file).CombinedOutput()
	if err != nil || len(said) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, said)
	}
}

func TestUnitIsNarrow(t *testing.T) {
	t.Parallel()
	tool := lookPath(t, "systemd-analyze")
	_, file := unit(t)
	said, err := exec.CommandContext(t.Context(), tool, "--no-pager", "security", "--offline=true", file).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(said)
	if err != nil || m == nil {
		t.Fatalf("systemd-analyze security: %v\n%s", err, said)
	}
	level, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || level > exposure {
		t.Errorf("exposure %v, at most %v (%v)\n%s", level, exposure, err, said)
	}
	t.Logf("exposure %v", level)
}

// The files beside the unit name the same user and folders as the unit itself.
func TestUnitFilesFitTogether(t *testing.T) {
	t.Parallel()
	text, _ := unit(t)
	users := string(must(t, filepath.Join(root, "deploy/systemd/locksteward.sysusers")))
	folders := string(must(t, filepath.Join(root, "deploy/systemd/locksteward.tmpfiles")))
	for _, want := range []string{"User=locksteward\n", "Group=locksteward\n", "StateDirectory=locksteward\n", "WorkingDirectory=/var/lib/locksteward\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit has no %s", want)
		}
	}
	if !strings.Contains(users, "u locksteward ") || !strings.Contains(folders, "/etc/locksteward 0750 root locksteward") {
		t.Errorf("sysusers or tmpfiles do not make what the unit needs:\n%s\n%s", users, folders)
	}
	dir := t.TempDir()
	if tool, err := exec.LookPath("systemd-sysusers"); err == nil {
		put(t, dir, "usr/lib/sysusers.d/locksteward.conf", users)
		if err := os.MkdirAll(filepath.Join(dir, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.CommandContext(t.Context(), tool, "--root="+dir, "locksteward.conf").CombinedOutput(); err != nil {
			t.Errorf("systemd-sysusers: %v\n%s", err, said)
		}
		if passwd := string(must(t, filepath.Join(dir, "etc/passwd"))); !strings.Contains(passwd, "locksteward:") {
			t.Errorf("no user in %s", passwd)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: folders of other owners need root")
	}
	if tool, err := exec.LookPath("systemd-tmpfiles"); err == nil {
		put(t, dir, "usr/lib/tmpfiles.d/locksteward.conf", folders)
		if said, err := exec.CommandContext(t.Context(), tool, "--root="+dir, "--create", "locksteward.conf").CombinedOutput(); err != nil {
			t.Errorf("systemd-tmpfiles: %v\n%s", err, said)
		}
		for path, mode := range map[string]os.FileMode{"etc/locksteward": 0o750, "etc/locksteward/credentials": 0o700} {
			if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
	}
}
