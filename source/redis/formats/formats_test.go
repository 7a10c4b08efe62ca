package formats

import "testing"

// Each format is complete: what a literal leaves out has a reason.
func TestFormatsAreComplete(t *testing.T) {
	t.Parallel()
	if len(byName) != len(table) {
		t.Errorf("%d formats have %d names", len(table), len(byName))
	}
	for _, f := range table {
		if f.decode == nil {
			t.Errorf("%s decodes nothing", f.Name)
		}
		if (f.release == nil) != (f.Never != "") {
			t.Errorf("%s is released, and never released because %q", f.Name, f.Never)
		}
		if f.placeholder != nil && f.NoPlaceholder != "" {
			t.Errorf("%s has a placeholder, and none because %q", f.Name, f.NoPlaceholder)
		}
		if f.reads != nil && f.Type == "" {
			t.Errorf("%s has auxiliary keys to read and no type", f.Name)
		}
		for _, n := range f.names {
			if n.prefix == "" && n.suffix == "" {
				t.Errorf("%s has a name with neither prefix nor suffix", f.Name)
			}
		}
	}
	for name, want := range map[string]bool{"redisson-semaphore": true, "sidekiq-unique-v9": true, "celery-singleton": true, Redisson: false, "dogpile": false, "nonsense": false} {
		if Facts(name).NoTTLByDesign != want {
			t.Errorf("Facts(%q).NoTTLByDesign = %t", name, !want)
		}
	}
}
