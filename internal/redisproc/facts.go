package redisproc

import (
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Network returns "tcp" or "unix".
func (p *Proc) Network() string { return p.network }

// Addr returns host:port, or the path of the socket.
func (p *Proc) Addr() string { return p.addr }

// Port returns the TCP port; 0 for a socket.
func (p *Proc) Port() int {
	if p.port == nil {
		return 0
	}
	return p.port.port
}

// BusPort returns the port of the cluster bus; 0 outside a Cluster.
func (p *Proc) BusPort() int {
	if p.bus == nil {
		return 0
	}
	return p.bus.port
}

// PID returns the id of the current process, or of the last one if it ended.
func (p *Proc) PID() int {
	if r := p.current(); r != nil {
		return r.Process.Pid
	}
	return 0
}

// Done returns a channel that is closed when the current process has ended, by
// itself or by a method of p. After [Proc.Restart] ask again.
func (p *Proc) Done() <-chan struct{} { return p.current().Done }

// Dir returns the working directory of the server.
func (p *Proc) Dir() string { return p.dir }

// LogPath returns the file that has all the server wrote, over all restarts.
func (p *Proc) LogPath() string { return filepath.Join(p.dir, "redis.log") }

// TLSConfig returns a copy of what a client needs to talk to the server, with
// a client certificate; nil without TLS.
func (p *Proc) TLSConfig() *tls.Config {
	if p.tlsConfig == nil {
		return nil
	}
	return p.tlsConfig.Clone()
}

// logTail returns the last 30 lines of the log, or why they cannot be read.
func (p *Proc) logTail() string { return Tail(p.LogPath(), 30) }

// logFrom returns the log from an offset on; nothing when it cannot be read,
// which the wait for readiness takes as "not yet".
func (p *Proc) logFrom(offset int64) string {
	f, err := os.Open(p.LogPath())
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, offset, 1<<20))
	if err != nil {
		return ""
	}
	return string(data)
}

// Tail returns the last n lines of the file at path, or a line that says why
// they cannot be read.
func Tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
