package redisproc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// confLines returns redis.conf for p: ours first, the caller's last.
func (p *Proc) confLines() []string {
	lines := []string{
		"bind 127.0.0.1",
		"daemonize no",
		"dir " + quote(p.dir),
		"tcp-keepalive 60",
	}
	if !p.opts.Sentinel {
		lines = append(lines,
			`save ""`,
			"appendonly no",
			"repl-diskless-sync yes",
			"repl-diskless-sync-delay 0",
		)
	}
	lines = append(lines, p.listenLines()...)
	if t := p.opts.TLS; t != nil {
		lines = append(lines,
			"tls-ca-cert-file "+quote(t.CAFile),
			"tls-cert-file "+quote(t.CertFile),
			"tls-key-file "+quote(t.KeyFile),
			"tls-auth-clients optional",
			"tls-replication yes",
		)
	}
	if p.opts.Cluster {
		lines = append(lines,
			"cluster-enabled yes",
			"cluster-config-file nodes.conf",
		)
		if p.version.AtLeast(7, 0) {
			lines = append(lines, fmt.Sprintf("cluster-port %d", p.bus.port))
		}
		if p.opts.TLS != nil {
			lines = append(lines, "tls-cluster yes")
		}
	}
	for _, line := range p.opts.Config {
		name, _, _ := strings.Cut(line, " ")
		if p.version.AtLeast(7, 0) || !slices.Contains(settings7, name) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (p *Proc) listenLines() []string {
	switch {
	case p.opts.Socket:
		return []string{"port 0", "unixsocket " + quote(p.addr), "unixsocketperm 700"}
	case p.opts.TLS != nil:
		return []string{"port 0", fmt.Sprintf("tls-port %d", p.port.port)}
	default:
		return []string{fmt.Sprintf("port %d", p.port.port)}
	}
}

// quote writes s as redis.conf wants it, whatever spaces a path has.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			b.WriteString(`\x` + strconv.FormatUint(uint64(c)>>4, 16) + strconv.FormatUint(uint64(c)&15, 16))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
