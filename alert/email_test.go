package alert

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/locksteward/locksteward"
)

// post box of a mail server that behaves as a test says.
type mailServer struct {
	t    *testing.T
	addr string
	ca   string
	cert atomic.Pointer[tls.Certificate] // what it shows

	mu    sync.Mutex
	mails []sentMail
	rcpt  func(to string) error
	from  func(from string) error
	data  func() error
	auth  func(user, password string) error
}

// sentMail is one that the server took, with who it was for.
type sentMail struct {
	from    string
	to      []string
	raw     []byte
	tls     bool
	user    string
	message *mail.Message
}

type mailOptions struct {
	plain    bool // no STARTTLS
	implicit bool // TLS comes first
	login    bool // asks for a login
}

func newMailServer(t *testing.T, o mailOptions) *mailServer {
	t.Helper()
	s := &mailServer{t: t}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	srv := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		_, encrypted := c.TLSConnectionState()
		return &session{server: s, login: o.login, mail: sentMail{tls: encrypted}}, nil
	}))
	srv.Domain = "mail.test"
	srv.ErrorLog = quietLog{}
	if !o.plain {
		var cert tls.Certificate
		cert, s.ca = certificate(t, time.Hour)
		s.cert.Store(&cert)
		srv.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil }}
	}
	if o.implicit {
		l = tls.NewListener(l, srv.TLSConfig)
		srv.TLSConfig = nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return s
}

type quietLog struct{}

func (quietLog) Printf(string, ...any) {}
func (quietLog) Println(...any)        {}

type session struct {
	server *mailServer
	login  bool
	mail   sentMail
}

func (s *session) AuthMechanisms() []string {
	if s.login {
		return []string{sasl.Plain}
	}
	return nil
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.server.mu.Lock()
		check := s.server.auth
		s.server.mu.Unlock()
		if check != nil {
			if err := check(user, password); err != nil {
				return err
			}
		}
		s.mail.user = user
		return nil
	}), nil
}

func (s *session) hook(pick func() error) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return pick()
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.login && s.mail.user == "" {
		return smtp.ErrAuthRequired
	}
	s.mail.from = from
	return s.hook(func() error {
		if s.server.from != nil {
			return s.server.from(from)
		}
		return nil
	})
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	err := s.hook(func() error {
		if s.server.rcpt != nil {
			return s.server.rcpt(to)
		}
		return nil
	})
	if err == nil {
		s.mail.to = append(s.mail.to, to)
	}
	return err
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		s.server.t.Errorf("%v: %s", err, raw)
	}
	done := s.mail
	done.raw, done.message = raw, m
	return s.hook(func() error {
		if s.server.data != nil {
			if err := s.server.data(); err != nil {
				return err
			}
		}
		s.server.mails = append(s.server.mails, done)
		return nil
	})
}

func (s *session) Reset() { s.mail.to = nil }

func (s *session) Logout() error { return nil }

func (s *mailServer) got() []sentMail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

func (s *mailServer) says(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// parts are the bodies of a mail by their types.
func (m sentMail) parts(t *testing.T) map[string]string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(m.message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%s: %v", kind, err)
	}
	out := map[string]string{}
	r := multipart.NewReader(m.message.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil || p.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
			t.Fatalf("%v: %v", err, p.Header)
		}
		raw, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		out[kind] = string(raw)
	}
}

func (m sentMail) subject(t *testing.T) string {
	t.Helper()
	text, err := new(mime.WordDecoder).DecodeHeader(m.message.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// out is a receiver of the server.
func (s *mailServer) out(edit func(*Receiver)) *email {
	s.t.Helper()
	cfg := Receiver{
		Server: s.addr, From: "Locksteward <locks@example.com>", To: []string{"ops@example.com", "Ana Müller <ana@example.com>"},
		Endpoint: Endpoint{AllowPrivate: true, CAFile: s.ca},
	}
	if edit != nil {
		edit(&cfg)
	}
	return openAs(s.t, "email", cfg).(*email)
}

func emailOf() writer {
	return newWriter(Config{Grouping: DefaultGrouping(), ConsoleURL: "https://locks.example.com"},
		Receiver{Name: "mail"}.withDefaults(), emailKind.traits, Hooks{})
}

func TestEmailOverStartTLS(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, mailOptions{login: true})
	out := s.out(func(c *Receiver) { c.Username, c.PasswordFile = "locks", file(t, "pa55word\n") })
	s.says(func() {
		s.auth = func(user, password string) error {
			if user != "locks" || password != "pa55word" {
				return errors.New("wrong")
			}
			return nil
		}
	})
	a := emailOf()
	one := fire("lock:order:1", 1)
	one.Finding.RunbookURL, one.Finding.Team = "https://wiki/locks", "checkout"
	first, second := a.groupNotification(t, 1, one), a.groupNotification(t, 0, resolve("lock:order:1", 2))
	sendAll(t, out, first, second)
	got := s.got()
	if len(got) != 2 {
		t.Fatalf("%d mails", len(got))
	}
	m := got[0]
	h := m.message.Header
	if !m.tls || m.user != "locks" || m.from != "locks@example.com" || strings.Join(m.to, " ") != "ops@example.com ana@example.com" {
		t.Errorf("got %+v", m)
	}
	for name, want := range map[string]string{
		"Message-Id": "<" + first.ID + "@example.com>", "Auto-Submitted": "auto-generated", "X-Locksteward-Type": "findings.firing",
		"From": `"Locksteward" <locks@example.com>`, "Mime-Version": "1.0",
	} {
		if h.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, h.Get(name), want)
		}
	}
	if list, err := h.AddressList("To"); err != nil || len(list) != 2 || list[1].Name != "Ana Müller" {
		t.Errorf("to %v, %v", list, err)
	}
	if at, err := h.Date(); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("date %s, %v", at, err)
	}
	if text := m.subject(t); !strings.HasPrefix(text, "🔴 FIRING critical") || !strings.Contains(text, "lock:order:1") {
		t.Errorf("subject %q", text)
	}
	parts := m.parts(t)
	for _, want := range []string{"never expires", "a crash between SETNX and EXPIRE", "PTTL is -1", "checkout", "https://wiki/locks", "https://locks.example.com/findings/"} {
		if !strings.Contains(parts["text/plain"], want) || !strings.Contains(parts["text/html"], want) {
			t.Errorf("%q is missing in\n%s\n%s", want, parts["text/plain"], parts["text/html"])
		}
	}
	if !strings.Contains(parts["text/html"], levelCritical.colour()) {
		t.Errorf("no colour in\n%s", parts["text/html"])
	}
	// Both are of one thread, and each is itself.
	next := got[1].message.Header
	if next.Get("References") == "" || next.Get("References") != h.Get("References") || next.Get("In-Reply-To") != h.Get("In-Reply-To") ||
		next.Get("Message-Id") == h.Get("Message-Id") {
		t.Errorf("references %q and %q", h.Get("References"), next.Get("References"))
	}
	if text := got[1].subject(t); !strings.HasPrefix(text, "🟢 RESOLVED") {
		t.Errorf("subject %q", text)
	}
}

func TestEmailOverImplicitTLSAndInTheClear(t *testing.T) {
	t.Parallel()
	sealed := newMailServer(t, mailOptions{implicit: true})
	out := sealed.out(nil)
	out.implicit = true // as on port 465
	m := emailOf().groupNotification(t, 1, fire("k", 1))
	sendAll(t, out, m)
	clear := newMailServer(t, mailOptions{plain: true})
	sendAll(t, clear.out(func(c *Receiver) { c.StartTLS = StartTLSNever }), m)
	if len(sealed.got()) != 1 || len(clear.got()) != 1 || clear.got()[0].tls {
		t.Errorf("%d and %d mails", len(sealed.got()), len(clear.got()))
	}
	if !openAs(t, "email", Receiver{Server: "h:465", From: "a@b", To: []string{"c@d"}}).(*email).implicit {
		t.Error("port 465 is not one where TLS comes first")
	}
	// Without STARTTLS nothing is sent.
	err := clear.out(nil).send(t.Context(), newOutgoing(m.ID, m.Body))
	if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Reason != ReasonTLS || !e.Retryable || !strings.Contains(err.Error(), "STARTTLS") || len(clear.got()) != 1 {
		t.Errorf("got %v", err)
	}
}

// Names and texts can break out of nothing: not out of headers, not out of HTML.
func TestEmailTakesHostileNames(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, mailOptions{})
	out := s.out(nil)
	var all []locksteward.Transition
	for i, key := range []string{
		"k\r\nBcc: eve@evil.example\r\n\r\nbody", "<script>alert(1)</script><a href=x>", strings.Repeat("锁", 3000), "\x00\xff\u202e", ".\r\n.\r\nQUIT",
	} {
		f := fire(key, uint64(i+1))
		f.Finding.RunbookURL = "javascript:alert(1)"
		all = append(all, f)
	}
	a := emailOf()
	for _, f := range all {
		sendAll(t, out, a.groupNotification(t, 1, f))
	}
	sendAll(t, out, a.groupNotification(t, len(all), all...))
	got := s.got()
	if len(got) != len(all)+1 {
		t.Fatalf("%d mails, want %d", len(got), len(all)+1)
	}
	for _, m := range got {
		if len(m.to) != 2 || m.message.Header.Get("Bcc") != "" {
			t.Errorf("to %v, header %v", m.to, m.message.Header)
		}
		for line := range bytes.Lines(m.raw) {
			if len(line) > 1000 {
				t.Errorf("a line of %d bytes", len(line)) // RFC 5322, 2.1.1
			}
		}
		if html := m.parts(t)["text/html"]; strings.Contains(html, "<script") || strings.Contains(html, "<a href=x") || strings.Contains(html, `href="javascript:`) {
			t.Errorf("HTML is not escaped:\n%s", html)
		}
	}
}

func refuse(code int) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: "no, pa55word"}
}

func TestEmailSaysNo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   func(*mailServer)
		want  Reason
		code  int
		retry bool
	}{
		"login":         {func(s *mailServer) { s.auth = func(string, string) error { return refuse(535) } }, ReasonRejected, 535, true},
		"sender":        {func(s *mailServer) { s.from = func(string) error { return refuse(550) } }, ReasonRejected, 550, false},
		"sender later":  {func(s *mailServer) { s.from = func(string) error { return refuse(451) } }, ReasonRejected, 451, true},
		"all":           {func(s *mailServer) { s.rcpt = func(string) error { return refuse(550) } }, ReasonRejected, 550, false},
		"all later":     {func(s *mailServer) { s.rcpt = func(string) error { return refuse(450) } }, ReasonRejected, 450, true},
		"message":       {func(s *mailServer) { s.data = func() error { return refuse(554) } }, ReasonRejected, 554, false},
		"message later": {func(s *mailServer) { s.data = func() error { return refuse(452) } }, ReasonRejected, 452, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMailServer(t, mailOptions{login: true})
			s.says(func() { c.set(s) })
			out := s.out(func(c *Receiver) { c.Username, c.PasswordFile = "locks", file(t, "pa55word") })
			m := emailOf().groupNotification(t, 1, fire("k", 1))
			err := out.send(t.Context(), newOutgoing(m.ID, m.Body))
			e, ok := errors.AsType[*DeliveryError](err)
			if !ok || e.Reason != c.want || e.Retryable != c.retry || e.Status != c.code || !strings.Contains(err.Error(), fmt.Sprint(c.code)) {
				t.Errorf("got %+v: %v", e, err)
			}
			if strings.Contains(err.Error(), "pa55word") || len(s.got()) != 0 {
				t.Errorf("got %v, %d mails", err, len(s.got()))
			}
		})
	}
}

// Who has a message does not get it again because another could not take it.
func TestEmailToSomeOfThem(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, mailOptions{})
	out := s.out(func(c *Receiver) {
		c.To = []string{"a@example.com", "grey@example.com", "gone@example.com", "a@example.com"}
	})
	code := map[string]int{"grey@example.com": 450, "gone@example.com": 550}
	s.says(func() {
		s.rcpt = func(to string) error {
			if n := code[to]; n != 0 {
				return refuse(n)
			}
			return nil
		}
	})
	m := emailOf().groupNotification(t, 1, fire("k", 1))
	attempt := func() (*DeliveryError, string) {
		t.Helper()
		err := out.send(t.Context(), newOutgoing(m.ID, m.Body))
		e, _ := errors.AsType[*DeliveryError](err)
		mails := s.got()
		if len(mails) == 0 {
			return e, ""
		}
		return e, strings.Join(mails[len(mails)-1].to, " ")
	}
	e, to := attempt()
	if e == nil || !e.Retryable || e.Status != 450 || !strings.Contains(e.Error(), "1 of 3 addressees have it") || to != "a@example.com" {
		t.Errorf("first to %s: %v", to, e)
	}
	s.says(func() { delete(code, "grey@example.com") })
	if e, to = attempt(); e == nil || e.Retryable || e.Status != 550 || !strings.Contains(e.Error(), "1 of 2") || to != "grey@example.com" {
		t.Errorf("then to %s: %v", to, e)
	}
	// It was given up; somebody corrects the address and retries it.
	s.says(func() { delete(code, "gone@example.com") })
	if e, to = attempt(); e != nil || to != "gone@example.com" || len(s.got()) != 3 {
		t.Errorf("at last to %s: %v", to, e)
	}
	// It is forgotten then, as is what is too old.
	if e, _ = attempt(); e != nil || len(s.got()[3].to) != 3 {
		t.Errorf("again: %v", e)
	}
	for i := range rememberPartials + 10 {
		out.partialDeliveries.add(fmt.Sprint(i), []string{"a"})
	}
	if len(out.partialDeliveries.has) != rememberPartials || len(out.partialDeliveries.ids) != rememberPartials || out.partialDeliveries.of("9") != nil || out.partialDeliveries.of("73") == nil {
		t.Errorf("remembers %d", len(out.partialDeliveries.has))
	}
}

// Servers that are not there, say nothing, say too much, or are somebody else.
func TestEmailServersThatDoNotWork(t *testing.T) {
	t.Parallel()
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				group.Go(func() { defer c.Close(); serve(c) })
			}
		})
		t.Cleanup(func() { _ = l.Close(); group.Wait() })
		return l.Addr().String()
	}
	hang := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	endless := func(c net.Conn) {
		chunk := bytes.Repeat([]byte("2"), 32<<10)
		for {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	}
	drip := func(c net.Conn) {
		for {
			if _, err := c.Write([]byte("2")); err != nil {
				return
			}
			select {
			case <-t.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	self := newMailServer(t, mailOptions{})
	expired, expiredCA := certificate(t, -time.Hour)
	private := newMailServer(t, mailOptions{plain: true})
	for name, c := range map[string]struct {
		edit func(*Receiver)
		want Reason
	}{
		"refused":     {func(c *Receiver) { c.Server = nobody(t) }, ReasonRefused},
		"hangs":       {func(c *Receiver) { c.Server = listen(hang) }, ReasonTimeout},
		"drips":       {func(c *Receiver) { c.Server = listen(drip) }, ReasonTimeout},
		"hangs up":    {func(c *Receiver) { c.Server = listen(func(net.Conn) {}) }, ReasonReset},
		"endless":     {func(c *Receiver) { c.Server = listen(endless) }, ReasonOther},
		"self-signed": {func(c *Receiver) { c.Server, c.CAFile = self.addr, "" }, ReasonTLS},
		"private":     {func(c *Receiver) { c.Server, c.AllowPrivate = private.addr, false }, ReasonBlocked},
		"no name":     {func(c *Receiver) { c.Server = "smtp.invalid" }, ReasonDNS},
		"by name": {func(c *Receiver) {
			c.Server = strings.Replace(private.addr, "127.0.0.1", "localhost", 1)
			c.AllowPrivate = false
		}, ReasonBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := self.out(func(cfg *Receiver) { cfg.Timeout = 500 * time.Millisecond; c.edit(cfg) })
			if c.want != ReasonTimeout {
				out.cfg.Timeout = 10 * time.Second
			}
			m := emailOf().groupNotification(t, 1, fire("k", 1))
			began := time.Now()
			err := out.send(t.Context(), newOutgoing(m.ID, m.Body))
			if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Reason != c.want || e.Retryable != (c.want != ReasonBlocked) || time.Since(began) > 9*time.Second {
				t.Errorf("got %+v: %v after %s", e, err, time.Since(began))
			}
		})
	}
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		addr := listen(func(c net.Conn) {
			_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{expired}}).Handshake()
		})
		out := self.out(func(c *Receiver) { c.Server, c.CAFile = addr, expiredCA })
		out.implicit = true
		m := emailOf().groupNotification(t, 1, fire("k", 1))
		err := out.send(t.Context(), newOutgoing(m.ID, m.Body))
		if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Reason != ReasonTLS || !strings.Contains(err.Error(), "expired") {
			t.Errorf("got %v", err)
		}
	})
}

func TestEmailConfig(t *testing.T) {
	t.Parallel()
	err := decode(t, `receivers:
  - {name: a, kind: email}
  - {name: b, kind: email, server: "h:0", from: "a b c", to: ["x@y", "no\r\nBcc: z@y"], username: u}
  - {name: c, kind: email, server: "h:25", from: "a@b", to: ["x@y"], starttls: never, username: u, password_file: /p}
  - {name: d, kind: email, server: ":25", from: "a@b", to: ["x@y"], starttls: maybe, timeout: 1h}
`).Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{
		"receivers[0].server: is missing", "receivers[0].from: is missing", "receivers[0].to: must be 1 to 100 addresses, got 0",
		`receivers[1].server: must be host:port, got "h:0"`, "receivers[1].from: \"a b c\" is not an address", "receivers[1].to[1]:",
		"receivers[1].password_file: goes with username", "receivers[2].starttls: never is for servers in your own network",
		"receivers[2].starttls: never would send the password", "receivers[3].server: must be host:port", "receivers[3].starttls: must be required or never",
		"receivers[3].timeout: must be",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	_, err = openEmail(Receiver{Server: "h:25", Username: "u", PasswordFile: "/nowhere/p", Endpoint: Endpoint{CAFile: "/nowhere/ca"}}, &files{})
	if err == nil || !strings.Contains(err.Error(), "password_file:") || !strings.Contains(err.Error(), "ca_file:") {
		t.Errorf("got %v", err)
	}
}
