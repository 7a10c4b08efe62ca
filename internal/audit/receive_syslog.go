package audit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// priority is facility 13 (log audit), severity 5 (notice): RFC 5424, 6.2.1.
const priority = 13*8 + 5

// syslogTimeout bounds a connection and a batch.
const syslogTimeout = 10 * time.Second

// syslogReceiver sends RFC 5424 messages: over UDP and a datagram socket one each,
// over a stream with their length in front (RFC 6587, octet counting). Nobody
// answers; a stream that broke gets the batch before the break once more.
type syslogReceiver struct {
	to   syslogAddress
	head string

	mu    sync.Mutex
	conn  net.Conn
	datag bool
	last  []byte // the batch before, of a stream
}

func newSyslog(to syslogAddress) *syslogReceiver {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return &syslogReceiver{to: to, head: fmt.Sprintf(" %s locksteward %d audit - ", printable(host, 255), os.Getpid())}
}

// printable is a name as the header of a message may have it.
func printable(name string, most int) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "-"
	}
	return name[:min(len(name), most)]
}

func (r *syslogReceiver) write(ctx context.Context, records []record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.deliver(ctx, records); err != nil {
		r.drop()
		return fmt.Errorf("send to syslog at %s: %w", r.to.address, err)
	}
	return nil
}

func (r *syslogReceiver) deliver(ctx context.Context, records []record) error {
	fresh := r.conn == nil
	if !fresh && r.hungUp() {
		r.drop()
		fresh = true
	}
	if fresh {
		if err := r.dial(ctx); err != nil {
			return err
		}
	}
	if err := r.conn.SetWriteDeadline(time.Now().Add(syslogTimeout)); err != nil {
		return err
	}
	if r.datag {
		return r.datagrams(records)
	}
	var batch []byte
	for _, rec := range records {
		batch = append(batch, counted(r.message(rec.at, rec.line))...)
	}
	if fresh && len(r.last) > 0 {
		if _, err := r.conn.Write(r.last); err != nil {
			return err
		}
	}
	if _, err := r.conn.Write(batch); err != nil {
		return err
	}
	r.last = batch
	return nil
}

// hungUp says whether the other side ended a stream: a write would still succeed
// once.
func (r *syslogReceiver) hungUp() bool {
	if r.datag {
		return false
	}
	if err := r.conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return true
	}
	_, err := r.conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (r *syslogReceiver) datagrams(records []record) error {
	for _, rec := range records {
		_, err := r.conn.Write(r.message(rec.at, rec.line))
		if errors.Is(err, syscall.EMSGSIZE) && rec.short != nil {
			_, err = r.conn.Write(r.message(rec.at, rec.short()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// message is one record as RFC 5424 has it.
func (r *syslogReceiver) message(at time.Time, line []byte) []byte {
	out := fmt.Appendf(nil, "<%d>1 %s%s", priority, at.UTC().Format(checkpointTime), r.head)
	return append(out, line[:len(line)-1]...)
}

// counted puts the length in front of a message.
func counted(message []byte) []byte {
	return append(append(strconv.AppendInt(nil, int64(len(message)), 10), ' '), message...)
}

func (r *syslogReceiver) dial(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, syslogTimeout)
	defer cancel()
	var d net.Dialer
	r.datag = r.to.network == "udp"
	switch r.to.network {
	case "unix":
		// A socket is of one kind or the other, and the kernel says of which.
		r.datag = true
		if r.conn, err = d.DialContext(ctx, "unixgram", r.to.address); err != nil {
			r.datag = false
			r.conn, err = d.DialContext(ctx, "unix", r.to.address)
		}
	case "tls":
		secure := tls.Dialer{NetDialer: &d, Config: &tls.Config{ServerName: r.to.host, MinVersion: tls.VersionTLS12}}
		r.conn, err = secure.DialContext(ctx, "tcp", r.to.address)
	default:
		r.conn, err = d.DialContext(ctx, r.to.network, r.to.address)
	}
	if err != nil {
		r.conn = nil
	}
	return err
}

// drop ends a connection; the next write begins another.
func (r *syslogReceiver) drop() {
	if r.conn != nil {
		_ = r.conn.Close()
		r.conn = nil
	}
}

func (r *syslogReceiver) reopen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
}

func (r *syslogReceiver) close() error {
	r.reopen()
	return nil
}
