package credfile_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A certificate that is replaced is used; whatever cannot be used leaves the one
// before in use, says why without a byte of the key, and is tried again.
func TestPairIsReplacedOnlyByWhatCanBeUsed(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "ca")
	dir := t.TempDir()
	first := ca.Issue(t, testcert.Leaf{Name: "first"})
	_, cert, key := testcert.Files(t, dir, "c", ca.PEM, first)
	p, err := credfile.OpenPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	good := first
	check := func(name string, refused string) {
		t.Helper()
		s := p.State(true)
		switch {
		case refused == "" && s.Refused != nil:
			t.Errorf("%s: refused: %v", name, s.Refused)
		case refused != "" && (s.Refused == nil || !strings.Contains(s.Refused.Error(), refused)):
			t.Errorf("%s: refused with %v, want %q", name, s.Refused, refused)
		}
		if s.Refused != nil && strings.Contains(s.Refused.Error(), "PRIVATE KEY") {
			t.Errorf("%s: the error shows the key", name)
		}
		if got := p.Certificate().Leaf; !got.Equal(good.Leaf) || !s.Expires.Equal(good.Leaf.NotAfter) {
			t.Errorf("%s: %q is in use, want %q", name, got.Subject.CommonName, good.Leaf.Subject.CommonName)
		}
	}
	check("as it began", "")

	second := ca.Issue(t, testcert.Leaf{Name: "second"})
	testcert.Put(t, cert, second.Cert)
	check("swapped: the key is the old one's", "private key does not match")
	testcert.Put(t, key, second.Key)
	good = second
	check("the key came too", "")

	for name, c := range map[string]struct {
		cert, key []byte
		says      string
	}{
		"an empty certificate":       {nil, second.Key, "empty"},
		"an empty key":               {second.Cert, nil, "empty"},
		"half a certificate":         {second.Cert[:len(second.Cert)/2], second.Key, "failed to find any PEM data"},
		"half a key":                 {second.Cert, second.Key[:len(second.Key)/2], "failed to find any PEM data"},
		"no PEM at all":              {[]byte("hello"), second.Key, "failed to find any PEM data"},
		"the files changed places":   {second.Key, second.Cert, "failed to find certificate PEM data"},
		"a bundle that is too large": {make([]byte, 5<<20), second.Key, "larger than"},
	} {
		testcert.Put(t, cert, c.cert)
		testcert.Put(t, key, c.key)
		check(name, c.says)
	}
	old := ca.Issue(t, testcert.Leaf{Name: "expired", NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	testcert.Put(t, cert, old.Cert)
	testcert.Put(t, key, old.Key)
	check("an expired one", "expired at")
	early := ca.Issue(t, testcert.Leaf{Name: "early", NotBefore: time.Now().Add(time.Hour)})
	testcert.Put(t, cert, early.Cert)
	testcert.Put(t, key, early.Key)
	check("one of tomorrow", "not valid before")
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	check("gone", "no such file")
	if err := os.Mkdir(cert, 0o700); err != nil {
		t.Fatal(err)
	}
	check("a directory", "no regular file")
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}

	third := ca.Issue(t, testcert.Leaf{Name: "third"})
	testcert.Put(t, cert, third.Cert)
	testcert.Put(t, key, third.Key)
	good = third
	check("a good one again", "")
	if g := p.State(false).Generation; g != 3 {
		t.Errorf("generation %d, want 3: first, second, third", g)
	}
}

// A certificate that is refused since it is early is used when its time comes, and
// of two that are over the newer counts: nobody has a better one.
func TestTimesOfCertificates(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "ca")
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		now := time.Now()
		soon := ca.Issue(t, testcert.Leaf{Name: "soon over", NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)})
		_, cert, key := testcert.Files(t, dir, "c", ca.PEM, soon)
		p, err := credfile.OpenPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		early := ca.Issue(t, testcert.Leaf{Name: "early", NotBefore: now.Add(time.Minute), NotAfter: now.Add(2 * time.Hour)})
		testcert.Put(t, cert, early.Cert)
		testcert.Put(t, key, early.Key)
		name := func() string { return p.Certificate().Leaf.Subject.CommonName }
		time.Sleep(credfile.LookEvery)
		if name() != "soon over" {
			t.Errorf("%s is in use before its time", name())
		}
		time.Sleep(2 * time.Minute)
		if name() != "early" || p.State(false).Refused != nil {
			t.Errorf("%s is in use, refused %v", name(), p.State(false).Refused)
		}
		time.Sleep(3 * time.Hour)
		if p.InTime() == nil {
			t.Error("an expired certificate counts")
		}
		over := ca.Issue(t, testcert.Leaf{Name: "over too", NotBefore: now, NotAfter: now.Add(150 * time.Minute)})
		testcert.Put(t, cert, over.Cert)
		testcert.Put(t, key, over.Key)
		time.Sleep(time.Second)
		if name() != "over too" {
			t.Errorf("%s is in use", name())
		}
	})
}

// Looks are rare however often the value is asked for.
func TestLooksAreRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pw")
		testcert.Put(t, path, []byte("one\n"))
		s, err := credfile.OpenSecret(path)
		if err != nil {
			t.Fatal(err)
		}
		testcert.Put(t, path, []byte("two\r\nsecond line"))
		if got := s.Secret().Reveal(); got != "one" {
			t.Errorf("%q at once", got)
		}
		time.Sleep(credfile.LookEvery)
		if got := s.Secret().Reveal(); got != "two" {
			t.Errorf("%q after a while", got)
		}
		testcert.Put(t, path, nil)
		if st := s.State(true); st.Refused == nil || !strings.Contains(st.Refused.Error(), "empty") || s.Secret() != "two" {
			t.Errorf("an emptied file: %+v", st)
		}
		if strings.Contains(s.State(true).Refused.Error(), "two") {
			t.Error("the password is shown")
		}
		if _, err := credfile.OpenSecret(path); err != nil {
			t.Errorf("an empty file at first: %v", err)
		}
	})
}

// Half a bundle of authorities is refused: it would turn away clients of the rest.
func TestPoolWantsTheWholeBundle(t *testing.T) {
	t.Parallel()
	a, b := testcert.NewCA(t, "a"), testcert.NewCAUntil(t, "b", time.Now().Add(72*time.Hour))
	path := filepath.Join(t.TempDir(), "ca.pem")
	both := append(append([]byte("# comment\n"), a.PEM...), b.PEM...)
	testcert.Put(t, path, both)
	p, err := credfile.OpenPool(path)
	if err != nil {
		t.Fatal(err)
	}
	if end := p.State(false).Expires; time.Until(end) < 48*time.Hour {
		t.Errorf("ends %s, want the end of the last one", end)
	}
	was := p.Pool()
	for name, text := range map[string][]byte{
		"cut short":    both[:len(both)-40],
		"no PEM":       []byte("x"),
		"empty":        nil,
		"all are over": testcert.NewCAUntil(t, "old", time.Now().Add(-time.Hour)).PEM,
	} {
		testcert.Put(t, path, text)
		if st := p.State(true); st.Refused == nil || p.Pool() != was {
			t.Errorf("%s is in use", name)
		}
	}
	testcert.Put(t, path, a.PEM)
	if st := p.State(true); st.Refused != nil || p.Pool() == was {
		t.Errorf("a good one is not in use: %v", st.Refused)
	}
}

func TestOpenReportsAllProblems(t *testing.T) {
	t.Parallel()
	keys := credfile.Keys{CA: "ca_file", Cert: "cert_file", Key: "key_file"}
	_, err := credfile.Open(credfile.Files{CA: "/nope/ca", Key: "/nope/key"}, keys)
	if err == nil || !strings.Contains(err.Error(), "ca_file: ") || !strings.Contains(err.Error(), "cert_file: is missing beside key_file") || !errors.Is(err, credfile.ErrNotBoth) {
		t.Errorf("got %v", err)
	}
	if s, err := credfile.Open(credfile.Files{}, keys); err != nil || s.States(true) != nil || s.Client("h", 0).RootCAs != nil {
		t.Errorf("nothing named: %v", err)
	}
	for text, want := range map[string]uint16{"": tls.VersionTLS12, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		if got, err := credfile.ParseVersion(text); got != want || err != nil {
			t.Errorf("version %q: %d, %v", text, got, err)
		}
	}
	if _, err := credfile.ParseVersion("1.1"); err == nil {
		t.Error("TLS 1.1 is taken")
	}
}

// A listener shows the certificate of the moment and asks for clients of the
// authorities of the moment, with no restart; TLS 1.1 is turned away.
func TestServerFollowsTheFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := testcert.NewCA(t, "one"), testcert.NewCA(t, "two")
	server := one.Issue(t, testcert.Leaf{Name: "server"})
	ca, cert, key := testcert.Files(t, dir, "s", one.PEM, server)
	set, err := credfile.Open(credfile.Files{CA: ca, Cert: cert, Key: key}, credfile.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", set.Server("http/1.1"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if conn.(*tls.Conn).HandshakeContext(t.Context()) == nil {
				_, _ = conn.Write([]byte("."))
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-served })
	client := func(ca *testcert.CA, name string) *credfile.Set {
		t.Helper()
		c, k, p := testcert.Files(t, dir, name, ca.PEM, ca.Issue(t, testcert.Leaf{Name: name}))
		s, err := credfile.Open(credfile.Files{CA: c, Cert: k, Key: p}, credfile.Keys{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	cache := tls.NewLRUClientSessionCache(4)
	dial := func(conf *tls.Config) error {
		conf.ClientSessionCache = cache
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		over := tls.Client(conn, conf)
		if err := over.HandshakeContext(t.Context()); err != nil {
			return err
		}
		_, err = over.Read(make([]byte, 1)) // TLS 1.3 reports a refusal behind the handshake
		return err
	}
	ofOne, ofTwo := client(one, "one"), client(two, "two")
	if err := dial(ofOne.Client("127.0.0.1", 0)); err != nil {
		t.Errorf("a client of the authority: %v", err)
	}
	bare := ofOne.Client("127.0.0.1", 0)
	bare.GetClientCertificate = nil
	if err := dial(bare); err == nil {
		t.Error("a client without a certificate gets in")
	}
	stranger := ofTwo.Client("127.0.0.1", 0)
	stranger.RootCAs = ofOne.CA.Pool()
	if err := dial(stranger); err == nil {
		t.Error("a client of another authority gets in")
	}
	old := ofOne.Client("127.0.0.1", 0)
	old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	if err := dial(old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	// Another authority for both sides.
	next := two.Issue(t, testcert.Leaf{Name: "server"})
	testcert.Put(t, ca, two.PEM)
	testcert.Put(t, cert, next.Cert)
	testcert.Put(t, key, next.Key)
	if err := set.Refused(); err != nil {
		t.Fatal(err)
	}
	if err := dial(ofTwo.Client("127.0.0.1", 0)); err != nil {
		t.Errorf("a client of the new authority: %v", err)
	}
	former := ofOne.Client("127.0.0.1", 0)
	former.RootCAs = ofTwo.CA.Pool()
	if err := dial(former); err == nil {
		t.Error("a client of the former authority gets in, with its old session perhaps")
	}
}
