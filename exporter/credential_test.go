package exporter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/exporter"
)

// Certificates are shown with their end, and refused files for as long as they
// are; however many there are, those that end first have a series.
func TestCredentials(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{})
	end := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	e.SetCredentials([]exporter.Credential{
		{Use: "target", Target: "m", File: "cert_file", Expires: end, Refused: true},
		{Use: "target", Target: "m", File: "password_file"},
		{Use: "console", File: "tls_cert_file", Expires: end.Add(time.Hour)},
	})
	want(t, e, map[string]float64{
		`certificate_expiry_timestamp_seconds{file="cert_file",target="m",use="target"}`:     float64(end.Unix()),
		`certificate_expiry_timestamp_seconds{file="tls_cert_file",target="",use="console"}`: float64(end.Unix() + 3600),
		`credential_refused{file="cert_file",target="m",use="target"}`:                       1,
	})
	many := make([]exporter.Credential, 0, 500)
	for i := range 500 {
		many = append(many, exporter.Credential{Use: "target", Target: fmt.Sprintf("t%03d", i), File: "cert_file", Expires: end.Add(-time.Duration(i) * time.Hour)})
	}
	e.SetCredentials(many)
	shown := 0
	for name := range scrape(t, e) {
		if strings.Contains(name, "credential_refused") {
			t.Errorf("%s: nothing is refused any more", name)
		}
		if strings.Contains(name, "certificate_expiry") {
			shown++
			if strings.Contains(name, "t000") {
				t.Error("the one that ends last is shown")
			}
		}
	}
	if shown != 100 {
		t.Errorf("%d certificates are shown, want 100", shown)
	}
}
