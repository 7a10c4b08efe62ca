package alert

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every failure ends with what to do about it, and a redirect shows at most the host
// that it leads to.
func TestFailuresEndWithTheWayOut(t *testing.T) {
	t.Parallel()
	answered := func(status int, head ...string) *DeliveryError {
		resp := &http.Response{StatusCode: status, Header: http.Header{}}
		for i := 0; i+1 < len(head); i += 2 {
			resp.Header.Set(head[i], head[i+1])
		}
		return statusError("https://h", resp, time.Now())
	}
	at := &poster{url: &url.URL{Scheme: "https", Host: "h", Path: "/hook"}, endpoint: "https://h"}
	failed := func(err error) *DeliveryError { return transportError("https://h", err) }
	said := func(v verdict) *DeliveryError {
		return at.rejected(answer{status: 200}, v)
	}
	mail := &email{cfg: Receiver{Server: "h:587"}}
	for name, c := range map[string]struct {
		err  *DeliveryError
		want string
	}{
		"redirect":         {answered(302, "Location", "https://new.example.com:8443/s3cr3t?token=t0ps3cret"), "write the final URL (this one leads to new.example.com:8443)"},
		"redirect, path":   {answered(301, "Location", "/s3cr3t"), "redirects are not followed: write the final URL"},
		"redirect, user":   {answered(307, "Location", "https://ann:pa55@h2/s3cr3t"), "(this one leads to h2)"},
		"redirect, odd":    {answered(308, "Location", "https://s3cr3t%00/x"), "write the final URL"},
		"redirect, no URL": {answered(300), "write the final URL"},
		"400":              {answered(400), "look at its log, correct the receiver and retry the notification"},
		"401":              {answered(401), "check the token, password or secret"},
		"402":              {answered(402), "the account"},
		"403":              {answered(403), "check the token, password or secret"},
		"404":              {answered(404), "correct the URL"},
		"407":              {answered(407), "a proxy in between wants a login"},
		"408":              {answered(408), "look at its log"},
		"410":              {answered(410), "the receiver says it is gone: make a new URL"},
		"413":              {answered(413), "lower max_findings"},
		"429":              {answered(429), "slow down: the next attempt comes after a pause"},
		"429, asked":       {answered(429, "Retry-After", "7"), "slow down: nothing is sent to it again before 7s are over"},
		"500":              {answered(500), "a fault of its own: look at its log"},
		"199":              {answered(199), "correct the receiver's configuration"},
		"refused":          {failed(syscall.ECONNREFUSED), "start the receiver, or correct host and port of url"},
		"reset":            {failed(syscall.ECONNRESET), "hung up: look at its log"},
		"dns":              {failed(&net.DNSError{Err: "no such host"}), "correct the host of url, or mend the name server"},
		"timeout":          {failed(context.DeadlineExceeded), "raise timeout"},
		"tls":              {failed(http.ErrSchemeMismatch), "ca_file"},
		"private":          {failed(&BlockedError{Addr: netip.MustParseAddr("10.0.0.1")}), "set allow_private: true on this receiver if that is meant"},
		"metadata":         {failed(&BlockedError{Addr: netip.MustParseAddr("169.254.169.254"), Never: true}), "correct the host of url"},
		"other":            {failed(errors.New("odd")), "correct the receiver's configuration"},
		"body":             {said(verdict{code: "310000"}), "check url, secret or key, and the settings at the service"},
		"body, too many":   {said(verdict{code: "1", disposition: throttled, pause: time.Minute}), "slow down: nothing is sent to it again before 1m0s"},
		"body, unfit":      {said(verdict{code: "1", disposition: unacceptable}), "correct the template or lower max_findings"},
		"body of a proxy":  {at.unexpectedAnswer(answer{status: 200}), "see whether the URL is right"},
		"mail, refused":    {mail.failed("connect", syscall.ECONNREFUSED), "correct host and port of server"},
		"mail, login":      {mail.refused(ReasonRejected, 535, "AUTH", "no", true), "check username and password"},
		"mail, later":      {mail.refused(ReasonRejected, 451, "MAIL", "no", true), "look at the server's log"},
		"mail, too long":   {mail.refused(ReasonRejected, 552, "DATA", "no", false), "lower max_findings"},
		"mail, sender":     {mail.refused(ReasonRejected, 550, "MAIL", "no", false), "check from and to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if text := c.err.Error(); !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q in it", text, c.want)
			}
			quiet(t, c.err)
		})
	}
	// Who adds a reason says what to do about it.
	for _, r := range Reasons() {
		needless := []Reason{ReasonOK, ReasonShutdown, ReasonNoFire, ReasonTooOld, ReasonRemoved, ReasonDecided}
		e := &DeliveryError{Reason: r, Endpoint: "https://h", Err: errors.New("it failed")}
		if has := strings.Contains(e.Error(), "; "); has == slices.Contains(needless, r) {
			t.Errorf("%s: got %q", r, e)
		}
	}
	for _, err := range []error{errNoFire, errTooOld, errRemoved, errDecided} {
		if !strings.Contains(fmt.Sprint(err), "retry") {
			t.Errorf("got %q", err)
		}
	}
}
