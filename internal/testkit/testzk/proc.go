package testzk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

const (
	pollEvery    = 10 * time.Millisecond
	startTimeout = 60 * time.Second
	// jarEnv names the jar to use, in place of the search.
	jarEnv = "LOCKSTEWARD_TEST_ZOOKEEPER_JAR"
)

// errNotInstalled says that the machine has no ZooKeeper server.
var errNotInstalled = errors.New("ZooKeeper is not installed: run make deps")

// places are where packages put the server: Debian, Homebrew on its two prefixes.
var places = []string{
	"/usr/share/java/zookeeper.jar",
	"/opt/homebrew/opt/zookeeper/libexec/lib/zookeeper-[0-9]*.jar",
	"/usr/local/opt/zookeeper/libexec/lib/zookeeper-[0-9]*.jar",
}

// jar returns the path of the server's jar.
func jar() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", errNotInstalled
	}
	look := places
	if path := os.Getenv(jarEnv); path != "" {
		look = []string{path}
	}
	for _, place := range look {
		if found, err := filepath.Glob(place); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errNotInstalled
}

// proc is one server: a directory with its data, and the process over it. It is safe for
// concurrent use.
type proc struct {
	dir, jar    string
	mode        Mode
	port, admin int
	secure      int            // the port for TLS; 0 for none
	keys, roots string         // PEM files: its certificate with the key, and the authorities of clients
	release     []func() error // of its ports

	mu  sync.Mutex
	run *run
}

// run is one life of the server.
type run struct {
	process *os.Process
	done    chan struct{} // closed when the process is gone and reaped
	err     error         // its exit status; read after done
}

// newProc starts a server. On an error nothing is left.
func newProc(ctx context.Context, jar string, mode Mode) (*proc, error) {
	dir, err := os.MkdirTemp("", "locksteward-zk-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	p := &proc{dir: dir, jar: jar, mode: mode}
	return p, p.start(ctx)
}

// start configures and launches a server. On an error nothing is left.
func (p *proc) start(ctx context.Context) (err error) {
	for range 3 { // somebody may take a port that was free
		if err = p.configure(); err != nil {
			break
		}
		if err = p.launch(context.WithoutCancel(ctx)); err == nil || !strings.Contains(err.Error(), "BindException") {
			break
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start ZooKeeper: %w", err), p.close())
	}
	return nil
}

// freePorts returns ports that are free, and that nobody takes before the server is closed.
func (p *proc) freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		port, release, err := redisproc.ReservePort()
		if err != nil {
			return nil, err
		}
		p.release = append(p.release, release)
		out = append(out, port)
	}
	return out, nil
}

// configure gives the server ports and a configuration. One of an ensemble that is [Lonely] has
// members that do not exist.
func (p *proc) configure() error {
	ports, err := p.freePorts(9)
	if err != nil {
		return err
	}
	p.port, p.admin = ports[0], ports[1]
	var others string
	if p.keys != "" {
		p.secure = ports[8]
		others = fmt.Sprintf(`serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPort=%d
secureClientPortAddress=127.0.0.1
ssl.keyStore.location=%s
ssl.keyStore.type=PEM
ssl.trustStore.location=%s
ssl.trustStore.type=PEM
`, p.secure, p.keys, p.roots)
	}
	if p.mode == Lonely || p.mode == ReadOnly {
		others = members(ports[2:8])
	}
	return p.write(1, others)
}

// members are the lines of a configuration that name the members of an ensemble, which have two
// ports each.
func members(ports []int) string {
	var b strings.Builder
	b.WriteString("initLimit=10\nsyncLimit=10\n")
	for i := 0; i+1 < len(ports); i += 2 {
		fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d\n", i/2+1, ports[i], ports[i+1])
	}
	return b.String()
}

// write writes the configuration of the server that has this number.
func (p *proc) write(number int, members string) error {
	config := fmt.Sprintf(`dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
admin.enableServer=%t
admin.serverAddress=127.0.0.1
admin.serverPort=%d
tickTime=%d
maxSessionTimeout=60000
maxClientCnxns=0
`, filepath.Join(p.dir, "data"), p.port, p.mode == Admin, p.admin, TickTime.Milliseconds()) + members
	if err := os.MkdirAll(filepath.Join(p.dir, "data"), 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "data", "myid"), fmt.Appendln(nil, number), 0o600); err != nil {
		return fmt.Errorf("write myid: %w", err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "zoo.cfg"), []byte(config), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// newEnsemble starts three servers that elect a leader. On an error nothing is left.
func newEnsemble(ctx context.Context, jar string) ([]*proc, error) {
	const size = 3
	var all proc // of which the first has the ports
	ports, err := all.freePorts(3 * size)
	if err != nil {
		return nil, err
	}
	procs := make([]*proc, size)
	errs := make([]error, size)
	var starting sync.WaitGroup
	for i := range procs {
		dir, err := os.MkdirTemp("", "locksteward-zk-")
		if err != nil {
			return nil, fmt.Errorf("make directory: %w", err)
		}
		p := &proc{dir: dir, jar: jar, mode: Member, port: ports[i]}
		if i == 0 {
			p.release = all.release
		}
		procs[i] = p
		if errs[i] = p.write(i+1, members(ports[size:])); errs[i] == nil {
			starting.Go(func() { errs[i] = p.launch(context.WithoutCancel(ctx)) })
		}
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, p := range procs {
			err = errors.Join(err, p.close())
		}
		return nil, fmt.Errorf("start ensemble: %w", err)
	}
	return procs, nil
}

func (p *proc) addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

func (p *proc) logPath() string { return filepath.Join(p.dir, "zookeeper.log") }

// launch starts the server and waits until it serves. On an error nothing runs.
func (p *proc) launch(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	r, err := p.spawn()
	if err != nil {
		return err
	}
	p.run = r
	if err := p.await(ctx, r); err != nil {
		return errors.Join(fmt.Errorf("%w; its log ends:\n%s", err, tail(p.logPath(), 30)), r.kill())
	}
	return nil
}

// spawn starts the process. The goroutine that starts it keeps its thread until the
// process ends, since on Linux the death of that thread kills it.
func (p *proc) spawn() (*run, error) {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	dir := filepath.Dir(p.jar)
	classes := []string{p.jar, filepath.Join(dir, "slf4j-simple.jar"), filepath.Join(dir, "servlet-api.jar")} // Debian's jar names the others
	if p.secure != 0 {                                                                                        // and of Netty only some
		for _, part := range []string{"buffer", "codec", "common", "handler", "resolver", "transport", "transport-native-unix-common", "transport-native-epoll"} {
			classes = append(classes, filepath.Join(dir, "netty-"+part+".jar"))
		}
	}
	if dir != "/usr/share/java" {
		classes = []string{filepath.Join(dir, "*")}
	}
	main := "org.apache.zookeeper.server.quorum.QuorumPeerMain"
	args := []string{
		"-Xmx256m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
		// The page cache outlives every crash that we make.
		"-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
	}
	if p.mode == ReadOnly {
		args = append(args, "-Dreadonlymode.enabled=true")
	}
	cmd := exec.Command("java", append(args, "-cp", strings.Join(classes, string(os.PathListSeparator)), main, filepath.Join(p.dir, "zoo.cfg"))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.dir, log, log, childAttr()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + p.dir, "LC_ALL=C", "TZ=UTC", "JAVA_HOME=" + os.Getenv("JAVA_HOME")}

	r := &run{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		r.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		r.err = cmd.Wait()
		close(r.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start java: %w", err)
	}
	return r, nil
}

// await asks until the server answers as its mode lets expect.
func (p *proc) await(ctx context.Context, r *run) error {
	want := map[Mode]string{Standalone: "Mode: standalone", Admin: "Mode: standalone", Member: "Mode: ", Lonely: "not currently serving", ReadOnly: "Mode: read-only"}[p.mode]
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		answer, err := p.srvr(ctx)
		if err == nil && strings.Contains(answer, want) {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("server ended at start: %w", r.err)
		case <-ctx.Done():
			return fmt.Errorf("await server: %w (last: %q, %w)", ctx.Err(), answer, err)
		case <-tick.C:
		}
	}
}

// srvr returns the answer to the four letter word.
func (p *proc) srvr(ctx context.Context) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", p.addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func (p *proc) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.process.Pid
}

func (p *proc) signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.process.Signal(sig)
}

func (p *proc) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	return p.run.kill()
}

// kill ends the process, paused or not.
func (r *run) kill() error {
	err := r.process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-r.done
	return err
}

// close ends the server and removes its directory.
func (p *proc) close() error {
	errs := []error{p.kill(), os.RemoveAll(p.dir)}
	for _, release := range p.release {
		errs = append(errs, release())
	}
	p.release = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end ZooKeeper: %w", err)
	}
	return nil
}
