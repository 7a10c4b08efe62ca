package alert

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/locksteward/locksteward"
)

// maxReplies is how much of a server's side of one conversation is read: its lines
// have no bound of their own.
const maxReplies = 256 << 10

// errEndless is a server that sends too much.
var errEndless = errors.New("the server's replies do not end")

// bounded is a connection that is read up to a limit.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errEndless
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// transmit sends the mail to those addressees that the server accepts, and returns them.
// The error, a *DeliveryError, is not nil if one did not get it.
func (e *email) transmit(ctx context.Context, to []string, raw []byte) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	conn, err := e.cfg.dialer().DialContext(ctx, "tcp", e.cfg.Server)
	if err != nil {
		return nil, e.failed("connect", err)
	}
	defer conn.Close()
	// Waiting for the server ends with ctx.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	took, err := e.runSession(&bounded{conn, maxReplies}, to, raw)
	if ctx.Err() != nil && err != nil && len(took) == 0 {
		return nil, transportError(e.endpoint(), ctx.Err())
	}
	return took, err
}

func (e *email) runSession(conn net.Conn, to []string, raw []byte) ([]string, error) {
	if e.implicit {
		conn = tls.Client(conn, e.tls)
	}
	c, err := smtp.NewClient(conn, e.host)
	if err != nil {
		return nil, e.failed("greeting", err)
	}
	if err := c.Hello(localName()); err != nil {
		return nil, e.failed("EHLO", err)
	}
	if !e.implicit && e.cfg.StartTLS == StartTLSRequired {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return nil, e.refused(ReasonTLS, 0, "STARTTLS", "the server does not offer STARTTLS: use port 465, or mend the server", true)
		}
		if err := c.StartTLS(e.tls); err != nil {
			return nil, e.failed("STARTTLS", err)
		}
	}
	if e.cfg.Username != "" {
		if err := e.logIn(c); err != nil {
			return nil, err
		}
	}
	return e.sendMail(c, to, raw)
}

// logIn uses a mechanism that the server offers; the connection is encrypted.
func (e *email) logIn(c *smtp.Client) error {
	_, offered := c.Extension("AUTH")
	user, password := e.cfg.Username, e.password.Reveal()
	var how smtp.Auth
	switch mechanisms := strings.Fields(strings.ToUpper(offered)); {
	case has(mechanisms, "PLAIN"):
		how = smtp.PlainAuth("", user, password, e.host, false)
	case has(mechanisms, "LOGIN"):
		how = smtp.LoginAuth(user, password, e.host, false)
	case has(mechanisms, "CRAM-MD5"):
		how = smtp.CRAMMD5Auth(user, password)
	default:
		return e.refused(ReasonRejected, 0, "AUTH", "the server offers no login by PLAIN, LOGIN or CRAM-MD5", true)
	}
	err := c.Auth(how)
	if code, text := reply(err); code != 0 {
		// A password can be corrected.
		return e.refused(ReasonRejected, code, "AUTH", text, true)
	}
	if err != nil {
		return e.failed("AUTH", err)
	}
	return nil
}

func has(list []string, word string) bool {
	return slices.Contains(list, word)
}

// sendMail sends the mail for those addressees that the server accepts.
func (e *email) sendMail(c *smtp.Client, to []string, raw []byte) ([]string, error) {
	if err := c.Mail(e.from.Address); err != nil {
		return nil, e.failed("MAIL", err)
	}
	var took []string
	var refused *DeliveryError // a retryable one, if there is one
	for _, a := range to {
		err := c.Rcpt(a)
		if err == nil {
			took = append(took, a)
			continue
		}
		if code, _ := reply(err); code == 0 {
			return nil, e.failed("RCPT", err)
		}
		if d := e.failed("RCPT", err); refused == nil || d.Retryable {
			refused = d
		}
	}
	if len(took) == 0 {
		return nil, refused
	}
	w, err := c.Data()
	if err != nil {
		return nil, e.failed("DATA", err)
	}
	if _, err := w.Write(raw); err != nil {
		return nil, e.failed("DATA", err)
	}
	if err := w.Close(); err != nil {
		return nil, e.failed("DATA", err)
	}
	_ = c.Quit() // the server has the mail
	if refused != nil {
		refused.Detail = cut(fmt.Sprintf("%d of %d addressees have it; ", len(took), len(to))+refused.Detail, maxDetail)
		return took, refused
	}
	return took, nil
}

// reply is the code and text of a refusal; 0 if err is none.
func reply(err error) (int, string) {
	if t, ok := errors.AsType[*textproto.Error](err); ok {
		return t.Code, t.Msg
	}
	return 0, ""
}

// failed classifies a step that failed: RFC 5321, 4.2.1: 4yz may work later, 5yz will
// not.
func (e *email) failed(step string, err error) *DeliveryError {
	code, text := reply(err)
	if code == 0 {
		d := transportError(e.endpoint(), err)
		d.Err = fmt.Errorf("%s: %w", step, d.Err)
		return d
	}
	return e.refused(ReasonRejected, code, step, text, code < 500)
}

func (e *email) refused(why Reason, code int, step, text string, retry bool) *DeliveryError {
	text = e.redacted(text)
	d := &DeliveryError{Reason: why, Status: code, Retryable: retry, Endpoint: e.endpoint(), Detail: cut(step+": "+text, maxDetail)}
	if code == 0 {
		d.Err = errors.New(d.Detail)
	}
	return d
}

// redacted is a server's own text without the password, in any form in which it was sent.
func (e *email) redacted(text string) string {
	if password := e.password.Reveal(); password != "" {
		for _, form := range []string{
			password, base64.StdEncoding.EncodeToString([]byte(password)),
			base64.StdEncoding.EncodeToString([]byte("\x00" + e.cfg.Username + "\x00" + password)),
		} {
			text = strings.ReplaceAll(text, form, locksteward.SecretMask)
		}
	}
	return cut(tidy(text), maxDetail)
}

// localName is the host name for EHLO.
func localName() string {
	name, err := os.Hostname()
	if err != nil || name == "" || strings.ContainsAny(name, " \r\n\t") {
		return "localhost"
	}
	return name
}
