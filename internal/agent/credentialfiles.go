package agent

import (
	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/credentials"
	"github.com/locksteward/locksteward/internal/credfile"
)

// openWebFiles opens the certificate files of the metrics' listener, which has checked them, to warn before they end.
func (a *Agent) openWebFiles(cfg config.Config) {
	var err error
	if a.webFiles, err = cfg.MetricsCredentials(); err != nil {
		a.log.Warn("nothing warns before the certificate of the metrics ends", zap.Error(err))
	}
}

// credentialFiles returns the state of all files of certificates and passwords. Targets that wait for one try again.
func (a *Agent) credentialFiles() []credentials.File {
	var out []credentials.File
	add := func(use, target string, files []credfile.File) {
		out = append(out, credentials.Files(use, target, files)...)
	}
	now := a.targets.Now()
	for name, w := range now.Watched {
		add("target", name, w.Files())
		if end, ok := w.ServerCertificateEnds(); ok {
			out = append(out, credentials.File{Use: "target", Target: name, Key: "server", State: credfile.State{Expires: end}})
		}
	}
	for name, cc := range *a.releaseFiles.Load() {
		add("release", name, cc.Files(true))
	}
	add("alert", "", a.alerts.Files())
	add("heartbeat", "", a.heartbeat.Files())
	add("audit", "", a.trail.Files())
	add("store", "", a.opened.Files())
	add("console", "", a.console.Files())
	add("metrics", "", a.webFiles.States(true))
	return out
}
