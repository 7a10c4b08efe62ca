package alert

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// withHint is text with what to do about it behind it.
func (e *DeliveryError) withHint(text string) string {
	if hint := e.hint(); hint != "" {
		return text + "; " + hint
	}
	return text
}

// hint is what to do about a failed attempt; "" where the text has it already or nothing
// needs to be done. It names keys of the receiver and shows no secret.
func (e *DeliveryError) hint() string {
	mail := strings.HasPrefix(e.Endpoint, smtpScheme)
	place := "url"
	if mail {
		place = "server"
	}
	switch e.Reason {
	case ReasonTimeout:
		return "see whether the receiver is slow or a firewall drops the connection, or raise timeout"
	case ReasonRefused:
		return "nothing listens there: start the receiver, or correct host and port of " + place
	case ReasonReset:
		return "the receiver, or a proxy before it, hung up: look at its log, and at the port of " + place
	case ReasonDNS:
		return "correct the host of " + place + ", or mend the name server"
	case ReasonTLS:
		if e.Detail != "" {
			return "" // the server's missing STARTTLS, with the way out
		}
		return "the certificate must be valid and for this host; name an authority of your own as ca_file, and see whether the port of " + place + " is one of TLS"
	case ReasonBlocked:
		if b, ok := errors.AsType[*BlockedError](e.Err); ok && !b.Never {
			return "" // it says so
		}
		return "correct the host of " + place
	case Reason3xx:
		if e.Moved != "" {
			return "redirects are not followed: write the final URL (this one leads to " + e.Moved + ")"
		}
		return "redirects are not followed: write the final URL"
	case Reason429:
		return e.slowDown()
	case Reason4xx:
		return e.hintFor4xx()
	case Reason5xx:
		return "the receiver, or a proxy before it, has a fault of its own: look at its log"
	case ReasonRejected:
		if mail {
			return e.hintForMail()
		}
		return e.hintForBody()
	case ReasonOther:
		return "look at the log of the receiver and of the agent, and correct the receiver's configuration"
	default:
		return ""
	}
}

func (e *DeliveryError) slowDown() string {
	if e.RetryAfter > 0 {
		return "slow down: nothing is sent to it again before " + e.RetryAfter.String() + " are over; group more (grouping) if that happens often"
	}
	return "slow down: the next attempt comes after a pause; group more (grouping) if that happens often"
}

func (e *DeliveryError) hintFor4xx() string {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check the token, password or secret, and the URL it belongs to"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return "nothing takes messages at this path: correct the URL"
	case http.StatusGone:
		return "the receiver says it is gone: make a new URL there and write it as url or into url_file"
	case http.StatusProxyAuthRequired:
		return "a proxy in between wants a login: let the agent past it"
	case http.StatusRequestEntityTooLarge:
		return "the message is too long for it: lower max_findings"
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly:
		return "it cannot take the message now: if that stays so look at its log"
	case http.StatusPaymentRequired:
		return "see to the account at the service"
	}
	switch {
	case e.RetryAfter > 0:
		return e.slowDown()
	case e.Retryable:
		return "check url, token or secret, and the settings at the service"
	default:
		return "it does not accept this message: look at its log, correct the receiver and retry the notification"
	}
}

// hintForBody is for services that answer with 200 and an error in the body.
func (e *DeliveryError) hintForBody() string {
	switch {
	case errors.Is(e.Err, errNotTheService):
		return "see whether the URL is right and what stands between it and the agent"
	case e.RetryAfter > 0:
		return e.slowDown()
	case !e.Retryable:
		return "the service does not accept this message: correct the template or lower max_findings, and retry the notification"
	default:
		return "check url, secret or key, and the settings at the service"
	}
}

// hintForMail is for mail servers, by RFC 5321, 4.2.3, and RFC 4954, 6.
func (e *DeliveryError) hintForMail() string {
	switch code := e.Status; {
	case code == 0 || code == 530 || code >= 534 && code <= 538 || code == 454:
		return "check username and password, and whether the server lets them log in"
	case code < 500:
		return "it may work later: if that stays so look at the server's log"
	case code == 552:
		return "the message is too long for it, or a mailbox is full: lower max_findings, or empty the mailbox"
	default:
		return "check from and to, and whether the server lets this agent send"
	}
}

var hostPattern = regexp.MustCompile(`^[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?$`)

// movedTo is the host of a redirect to another one. Its path and query are not shown:
// they hold tokens.
func movedTo(resp *http.Response) string {
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || !hostPattern.MatchString(to.Host) || resp.Request != nil && to.Host == resp.Request.URL.Host {
		return ""
	}
	return to.Host
}
