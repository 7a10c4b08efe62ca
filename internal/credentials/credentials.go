// Package credentials follows the files of certificates and passwords that are in use: it logs files that are replaced
// or cannot be used, and certificates that end soon, and shows the state of each file as metrics.
package credentials

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/credfile"
)

const (
	// checkEvery is how often the files are checked: a new file is in use within a second.
	checkEvery = time.Second
	// endsSoon is how long before the end of a certificate the log warns, as the Prometheus alert does.
	endsSoon = 14 * 24 * time.Hour
)

// File is one file in use.
type File struct {
	Use, Target, Key string // as the labels of the metrics
	State            credfile.State
}

// Files returns the files of one use.
func Files(use, target string, files []credfile.File) []File {
	out := make([]File, len(files))
	for i, f := range files {
		out[i] = File{use, target, f.Key, f.State}
	}
	return out
}

// Run checks the files once a second until ctx ends, logs what is new, and shows all of them.
func Run(ctx context.Context, log *zap.Logger, files func() []File, show func([]exporter.Credential)) error {
	m := &monitor{log: log}
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		show(m.check(files(), time.Now()))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// monitor remembers what was logged.
type monitor struct {
	log    *zap.Logger
	logged map[id]logged
}

type id struct{ use, target, key string }

// logged is what the log has of one file.
type logged struct {
	generation uint64
	refused    string
	ends       time.Time // of the certificate that the log warned of
}

func (m *monitor) check(files []File, now time.Time) []exporter.Credential {
	out := make([]exporter.Credential, 0, len(files))
	next := make(map[id]logged, len(files))
	for _, f := range files {
		next[id{f.Use, f.Target, f.Key}] = m.logNew(f, now)
		out = append(out, exporter.Credential{
			Use: f.Use, Target: f.Target, File: f.Key, Expires: f.State.Expires, Refused: f.State.Refused != nil,
		})
	}
	m.logged = next
	return out
}

// logNew logs what is new of one file and returns what the log then has of it.
func (m *monitor) logNew(f File, now time.Time) logged {
	was, known := m.logged[id{f.Use, f.Target, f.Key}]
	is := logged{generation: f.State.Generation, ends: was.ends}
	log := m.log.With(zap.String("use", f.Use), zap.String("target", f.Target), zap.String("file", f.Key))
	if f.State.Refused != nil {
		is.refused = f.State.Refused.Error()
	}
	switch {
	case is.refused != "" && is.refused != was.refused:
		log.Warn("a file cannot be used: what it held before stays in use", zap.Error(f.State.Refused))
	case known && is.generation != was.generation:
		log.Info("a file was replaced and is in use")
	case is.refused == "" && was.refused != "":
		log.Info("a file can be used again")
	}
	if end := f.State.Expires; !end.IsZero() && end.Sub(now) < endsSoon && !end.Equal(was.ends) {
		is.ends = end
		if now.After(end) {
			log.Warn("a certificate has ended: put a new one into its file", zap.Time("ended", end))
		} else {
			log.Warn("a certificate ends soon: put a new one into its file", zap.Time("ends", end))
		}
	}
	return is
}
