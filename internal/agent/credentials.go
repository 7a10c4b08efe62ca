package agent

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/credfile"
)

const (
	// credentialsEvery is how often files of certificates and passwords are looked
	// at: what is replaced is used within a second, also by those who wait.
	credentialsEvery = time.Second
	// endsSoon is when the log begins to tell of the end of a certificate, as the
	// Prometheus rule does.
	endsSoon = 14 * 24 * time.Hour
)

// credentials is what was said of files of certificates and passwords.
type credentials struct {
	log  *zap.Logger
	said map[credential]saidOf
}

// credential names one of them, as the metrics do.
type credential struct{ use, target, file string }

// saidOf is what the log has of a credential.
type saidOf struct {
	generation uint64
	refused    string
	ends       time.Time // of which it was said that it ends soon
}

// openWebFiles prepares to tell when the certificates of the metrics' listener end.
// That listener has checked them itself.
func (a *Agent) openWebFiles(cfg config.Config) {
	var err error
	if a.webFiles, err = cfg.MetricsCredentials(); err != nil {
		a.log.Warn("it is not told when the certificate for metrics ends", zap.Error(err))
	}
}

// keepCredentials follows all files of certificates and passwords until ctx ends.
func (a *Agent) keepCredentials(ctx context.Context) error {
	c := &credentials{log: a.log, said: map[credential]saidOf{}}
	tick := time.NewTicker(credentialsEvery)
	defer tick.Stop()
	for {
		a.exporter.SetCredentials(c.take(a.credentialFiles(), time.Now()))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// credentialFile is the state of one of them.
type credentialFile struct {
	credential
	state credfile.State
}

// credentialFiles looks at all of them. Targets that wait for a password or a
// certificate try again.
func (a *Agent) credentialFiles() []credentialFile {
	var out []credentialFile
	add := func(use, target string, files []credfile.File) {
		for _, f := range files {
			out = append(out, credentialFile{credential{use, target, f.Key}, f.State})
		}
	}
	now := a.current()
	conns := make(map[string]*connect.Conn, len(now.targets))
	for name, w := range now.targets {
		conns[name] = w.conn
	}
	releases := now.releaseFiles
	for name, conn := range conns {
		add("redis", name, conn.Files())
		if end, ok := conn.ServerCertificateEnds(); ok {
			out = append(out, credentialFile{credential{"redis", name, "server"}, credfile.State{Expires: end}})
		}
	}
	for name, cc := range releases {
		add("release", name, cc.Files(true))
	}
	add("alert", "", a.alerts.Files())
	add("heartbeat", "", a.heart.files())
	add("audit", "", a.trail.Files())
	add("store", "", a.opened.Files())
	add("console", "", a.console.Files())
	add("metrics", "", a.webFiles.States(true))
	return out
}

// take logs what is new, once, and returns what the metrics show.
func (c *credentials) take(files []credentialFile, now time.Time) []exporter.Credential {
	out := make([]exporter.Credential, 0, len(files))
	said := make(map[credential]saidOf, len(files))
	for _, f := range files {
		said[f.credential] = c.tell(f, now)
		out = append(out, exporter.Credential{
			Use: f.use, Target: f.target, File: f.file, Expires: f.state.Expires, Refused: f.state.Refused != nil,
		})
	}
	c.said = said
	return out
}

func (c *credentials) tell(f credentialFile, now time.Time) saidOf {
	was, known := c.said[f.credential]
	is := saidOf{generation: f.state.Generation, ends: was.ends}
	log := c.log.With(zap.String("use", f.use), zap.String("target", f.target), zap.String("file", f.file))
	if f.state.Refused != nil {
		is.refused = f.state.Refused.Error()
	}
	switch {
	case is.refused != "" && is.refused != was.refused:
		log.Warn("a file cannot be used: what it held before stays in use", zap.Error(f.state.Refused))
	case known && is.generation != was.generation:
		log.Info("a file was replaced and is in use")
	case is.refused == "" && was.refused != "":
		log.Info("a file can be used again")
	}
	if end := f.state.Expires; !end.IsZero() && end.Sub(now) < endsSoon && !end.Equal(was.ends) {
		is.ends = end
		if now.After(end) {
			log.Warn("a certificate has ended: put a new one into its file", zap.Time("ended", end))
		} else {
			log.Warn("a certificate ends soon: put a new one into its file", zap.Time("ends", end))
		}
	}
	return is
}
