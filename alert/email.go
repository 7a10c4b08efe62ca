package alert

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"slices"
	"strconv"
	"sync"

	"github.com/locksteward/locksteward"
)

// The values of starttls.
const (
	// StartTLSRequired encrypts with STARTTLS, or sends nothing.
	StartTLSRequired = "required"
	// StartTLSNever sends in the clear, inside the own network.
	StartTLSNever = "never"
)

const (
	defaultSMTPPort  = "587"
	implicitTLSPort  = "465"
	emailCap         = 20
	emailsPerMinute  = 30
	maxAddressees    = 100
	rememberPartials = 64
)

// emailKind sends mail through an SMTP server: docs/receivers/email.md.
var emailKind = kind{
	traits: traits{cap: emailCap, people: true, rates: rates{perMinute: emailsPerMinute}},
	fill: func(r *Receiver) {
		r.StartTLS = cmp.Or(r.StartTLS, StartTLSRequired)
		if _, _, err := net.SplitHostPort(r.Server); err != nil && r.Server != "" {
			r.Server = net.JoinHostPort(r.Server, defaultSMTPPort)
		}
	},
	problems: emailProblems,
	open:     openEmail,
}

func emailProblems(r Receiver) []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	host, port, err := net.SplitHostPort(r.Server)
	switch n, portErr := strconv.ParseUint(port, 10, 16); {
	case r.Server == "":
		bad("server: is missing: write the host of an SMTP server, such as smtp.example.com:587")
	case err != nil || host == "" || portErr != nil || n == 0:
		bad("server: must be host:port, got %q", r.Server)
	}
	switch r.StartTLS {
	case StartTLSRequired:
	case StartTLSNever:
		if !r.AllowPrivate {
			bad("starttls: never is for servers in your own network, which need allow_private: true")
		}
		if r.Username != "" {
			bad("starttls: never would send the password of %q in the clear: leave username out, or starttls", r.Username)
		}
	default:
		bad("starttls: must be required or never, got %q", r.StartTLS)
	}
	if (r.Username == "") != (r.PasswordFile == "" && r.Password == "") {
		bad("password_file: goes with username, as password does: write both or none")
	}
	if r.From == "" {
		bad("from: is missing: write the address that messages come from")
	} else if _, err := mail.ParseAddress(r.From); err != nil {
		bad("from: %q is not an address: %w", r.From, err)
	}
	if len(r.To) == 0 || len(r.To) > maxAddressees {
		bad("to: must be 1 to %d addresses, got %d", maxAddressees, len(r.To))
	}
	for i, a := range r.To {
		if _, err := mail.ParseAddress(a); err != nil {
			bad("to[%d]: %q is not an address: %w", i, a, err)
		}
	}
	return errs
}

func openEmail(r Receiver, fs *files) (transport, error) {
	look, lookErr := newRenderer(r)
	config, tlsErr := r.tls(fs)
	password, passwordErr := fs.secretOr(r.Password, "password_file", r.PasswordFile)
	if err := errors.Join(lookErr, tlsErr, passwordErr); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(r.Server)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	config.ServerName = host
	e := &email{renderer: look, cfg: r, host: host, tls: config, implicit: port == implicitTLSPort, password: password, partialDeliveries: &partialDeliveries{}}
	from, err := mail.ParseAddress(r.From)
	if err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	e.from = from
	for i, text := range r.To {
		a, err := mail.ParseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("to[%d]: %w", i, err)
		}
		e.to = append(e.to, a)
	}
	return e, nil
}

// email delivers through one SMTP server.
type email struct {
	renderer
	cfg               Receiver
	host              string
	tls               *tls.Config
	implicit          bool // TLS comes first
	password          locksteward.Secret
	from              *mail.Address
	to                []*mail.Address
	partialDeliveries *partialDeliveries
}

// smtpScheme begins the endpoint of a mail server.
const smtpScheme = "smtp://"

func (e *email) endpoint() string { return smtpScheme + e.cfg.Server }

// send makes one attempt to reach the addressees that do not have the mail yet.
func (e *email) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return undecodable(e.endpoint(), out.err)
	}
	raw, err := e.message(out.id, out.payload)
	if err != nil {
		return &DeliveryError{Reason: ReasonOther, Endpoint: e.endpoint(), Err: err}
	}
	has := e.partialDeliveries.of(out.id)
	var to []string
	for _, a := range e.to {
		if !slices.Contains(has, a.Address) && !slices.Contains(to, a.Address) {
			to = append(to, a.Address)
		}
	}
	took, err := e.transmit(ctx, to, raw)
	if err == nil {
		e.partialDeliveries.forget(out.id)
		return nil
	}
	if len(took) > 0 {
		e.partialDeliveries.add(out.id, took)
	}
	return err
}

func (e *email) close() {}

// takeState takes over which addressees have a mail already.
func (e *email) takeState(from transport) { e.partialDeliveries = from.(*email).partialDeliveries }

// partialDeliveries are the addressees of the newest mails that did not reach all.
type partialDeliveries struct {
	mu  sync.Mutex
	ids []string // the oldest first
	has map[string][]string
}

func (p *partialDeliveries) of(id string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.has[id]
}

func (p *partialDeliveries) add(id string, took []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.has == nil {
		p.has = map[string][]string{}
	}
	if _, known := p.has[id]; !known {
		p.ids = append(p.ids, id)
	}
	p.has[id] = append(p.has[id], took...)
	if len(p.ids) > rememberPartials {
		delete(p.has, p.ids[0])
		p.ids = p.ids[1:]
	}
}

func (p *partialDeliveries) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.has[id]; known {
		delete(p.has, id)
		p.ids = slices.DeleteFunc(p.ids, func(s string) bool { return s == id })
	}
}
