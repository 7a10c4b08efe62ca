package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
)

// A module under a licence that is not on the list, or without one, is found; what
// tools may have the binary may not.
func TestJudge(t *testing.T) {
	t.Parallel()
	c, err := assets.DefaultClassifier()
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		for _, variant := range []string{"pristine.txt", "license.txt"} {
			if raw, err := assets.ReadLicenseFile("License/" + name + "/" + variant); err == nil {
				return string(raw)
			}
		}
		t.Fatalf("no text of %s", name)
		return ""
	}
	for name, tt := range map[string]struct {
		file, text string
		product    bool
		want       string
	}{
		"MIT":               {"LICENSE", text("MIT"), true, ""},
		"Apache":            {"LICENSE.txt", text("Apache-2.0"), true, ""},
		"GPL":               {"COPYING", text("GPL-3.0"), false, "NOT ALLOWED: GPL-3.0"},
		"AGPL":              {"LICENSE.md", text("AGPL-3.0"), true, "NOT ALLOWED: AGPL-3.0"},
		"two, one of them":  {"LICENSE", text("MIT") + "\n\n" + text("GPL-2.0"), true, "NOT ALLOWED: GPL-2.0"},
		"MPL in a tool":     {"LICENSE", text("MPL-2.0"), false, ""},
		"MPL in the binary": {"LICENSE", text("MPL-2.0"), true, "NOT ALLOWED: MPL-2.0"},
		"words":             {"LICENSE", "You may do with it what you like.", true, "NO LICENCE FOUND"},
		"a file of code":    {"license.go", text("MIT"), true, "NO LICENCE FOUND"},
		"the notice alone": {"LICENSE", "Copyright 2020 A. Person\n\nLicensed under the Apache License, Version 2.0 (the \"License\");\n" +
			"you may not use this file except in compliance with the License.\nYou may obtain a copy of the License at\n\n" +
			"    http://www.apache.org/licenses/LICENSE-2.0\n\nUnless required by applicable law or agreed to in writing, software\n" +
			"distributed under the License is distributed on an \"AS IS\" BASIS,\nWITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.\n" +
			"See the License for the specific language governing permissions and\nlimitations under the License.\n", true, ""},
		"no file of the name": {"README", text("MIT"), true, "NO LICENCE FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f := judge(c, module{Path: "example.com/m", Dir: dir}, tt.product)
			if !strings.HasPrefix(f.problem, tt.want) || tt.want == "" && f.problem != "" {
				t.Errorf("%q (%v), want %q", f.problem, f.licences, tt.want)
			}
		})
	}
}
