package redisproc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are drawn from below the ephemeral ranges of Linux (32768) and macOS
// (49152), so that no outgoing connection takes one while its server is down.
const (
	firstPort = 20000
	lastPort  = 31999
)

// reservation is a port that no other Proc on this machine uses. The lock on
// its file goes with the process that holds it, however that one ends.
type reservation struct {
	port int
	file *os.File
}

// reservePort takes a random port that is reserved by nobody and free now.
func reservePort() (*reservation, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("locksteward-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserve port: %w", err)
	}
	for range 200 {
		r, err := tryPort(dir, firstPort+rand.IntN(lastPort-firstPort+1))
		if r != nil || err != nil {
			return r, err
		}
	}
	return nil, errNoPort
}

// ReservePort returns a port of 127.0.0.1 for another server, where nobody listens now. Until release, or
// the end of this process, no Proc and no other caller on this machine is given it; nor is an outgoing connection,
// as far as the system takes those from 32768 on.
func ReservePort() (port int, release func() error, err error) {
	r, err := reservePort()
	if err != nil {
		return 0, nil, err
	}
	return r.port, r.release, nil
}

var errNoPort = errors.New("reserve port: no free port in 200 draws")

// busDistance is how far above its port a node of a Cluster listens for the
// others; before Redis 7.0 there is no other sign.
const busDistance = 10_000

// reservePair takes a port and the one of the bus that belongs to it.
func reservePair() (port, bus *reservation, err error) {
	for range 200 {
		if port, err = reservePort(); err != nil {
			return nil, nil, err
		}
		if port.port+busDistance <= lastPort {
			bus, err = tryPort(filepath.Dir(port.file.Name()), port.port+busDistance)
			if bus != nil {
				return port, bus, nil
			}
		}
		if err = errors.Join(err, port.release()); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errNoPort
}

// tryPort takes a port unless it is reserved or in use; then it returns nil.
func tryPort(dir string, port int) (*reservation, error) {
	file, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("reserve port: %w", err)
	}
	r := &reservation{port: port, file: file}
	if lockFile(file) == nil && portFree(port) {
		return r, nil
	}
	return nil, r.release()
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// release gives the port back. The file stays: removing it would let two
// processes lock two files of one name.
func (r *reservation) release() error {
	if r == nil {
		return nil
	}
	if err := r.file.Close(); err != nil {
		return fmt.Errorf("release port %d: %w", r.port, err)
	}
	return nil
}
