package alert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// Reason is why an attempt ended as it did: the `reason` label of
// locksteward_notifications_total.
type Reason string

// The reasons, a closed set.
const (
	ReasonOK       Reason = "ok"
	ReasonTimeout  Reason = "timeout"
	ReasonRefused  Reason = "refused"
	ReasonReset    Reason = "reset"
	ReasonDNS      Reason = "dns"
	ReasonTLS      Reason = "tls"
	ReasonBlocked  Reason = "blocked" // an address that allow_private does not permit
	Reason3xx      Reason = "http_3xx"
	Reason4xx      Reason = "http_4xx"
	Reason429      Reason = "http_429"
	Reason5xx      Reason = "http_5xx"
	ReasonRejected Reason = "rejected" // by a code in the answer, or the answer is not the service's
	ReasonShutdown Reason = "shutdown" // interrupted; sent again after the restart
	ReasonNoFire   Reason = "no_fire"  // a resolve whose fire did not arrive
	ReasonTooOld   Reason = "too_old"  // the receiver accepted nothing for max_age
	ReasonRemoved  Reason = "removed"  // its receiver was removed from the configuration
	ReasonDecided  Reason = "decided"  // it asked for a decision on a request that had ended
	ReasonOther    Reason = "other"
)

// Reasons returns all reasons, for pre-initialised metrics.
func Reasons() []Reason {
	return []Reason{
		ReasonOK, ReasonTimeout, ReasonRefused, ReasonReset, ReasonDNS, ReasonTLS, ReasonBlocked, Reason3xx,
		Reason4xx, Reason429, Reason5xx, ReasonRejected, ReasonShutdown, ReasonNoFire, ReasonTooOld, ReasonRemoved, ReasonDecided, ReasonOther,
	}
}

// The outcomes: the `outcome` label of locksteward_notifications_total.
const (
	// OutcomeDelivered is one notification that the receiver accepted.
	OutcomeDelivered = "delivered"
	// OutcomeRetried is one attempt that failed and is retried.
	OutcomeRetried = "retried"
	// OutcomeDropped is one notification that was given up: a dead letter.
	OutcomeDropped = "dropped"
)

// certainlyMissed reports whether an attempt that ended so did not reach the receiver's
// application.
func (r Reason) certainlyMissed() bool {
	switch r {
	case ReasonRefused, ReasonDNS, ReasonTLS, ReasonBlocked, Reason3xx, Reason4xx, Reason429:
		return true
	default:
		return false
	}
}

// DeliveryError is a failed attempt. Its text has the receiver's scheme and
// host, never the rest of the URL.
type DeliveryError struct {
	Reason Reason
	// Status is the HTTP status, 0 if there was no answer.
	Status    int
	Retryable bool
	// RetryAfter is how long the receiver asked to wait; 0: it did not.
	RetryAfter time.Duration
	// Endpoint is scheme and host.
	Endpoint string
	// Code and Detail are the service's own error, without secrets and at most 200
	// characters; "" if there is none.
	Code, Detail string
	// Moved is the host that a redirect leads to, if that is another one.
	Moved string
	Err   error
}

// Error describes the failure without the URL's path, query and credentials, and ends with
// a hint.
func (e *DeliveryError) Error() string {
	if e.Status != 0 {
		return e.withHint(fmt.Sprintf("post to %s: status %d%s", e.Endpoint, e.Status, e.serviceMessage()))
	}
	return e.withHint(fmt.Sprintf("post to %s: %v", e.Endpoint, e.Err))
}

// Unwrap returns the cause, nil when the receiver answered.
func (e *DeliveryError) Unwrap() error { return e.Err }

// undecodable is the failure of a notification whose body is damaged.
func undecodable(endpoint string, err error) *DeliveryError {
	return &DeliveryError{Reason: ReasonOther, Endpoint: endpoint, Err: fmt.Errorf("decode notification: %w", err)}
}

// transportError classifies an attempt without an answer.
func transportError(endpoint string, err error) *DeliveryError {
	// A url.Error carries the whole URL.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	e := &DeliveryError{Endpoint: endpoint, Err: err, Reason: ReasonOther, Retryable: true}
	switch {
	case isA[*BlockedError](err):
		e.Reason, e.Retryable = ReasonBlocked, false
	case errors.Is(err, context.Canceled):
		e.Reason, e.Retryable = ReasonShutdown, false
	case isA[*net.DNSError](err):
		e.Reason = ReasonDNS
	case isTimeout(err):
		e.Reason = ReasonTimeout
	case isTLS(err):
		e.Reason = ReasonTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Reason = ReasonRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Reason = ReasonReset
	}
	return e
}

// attemptTimeout is the timeout that ended an attempt without an answer.
type attemptTimeout struct{ within time.Duration }

func (l attemptTimeout) Error() string { return "no answer within " + l.within.String() }

// Is makes it context.DeadlineExceeded as well.
func (attemptTimeout) Is(target error) bool { return target == context.DeadlineExceeded }

// nameTimeout replaces the error of an attempt that its timeout ended.
func nameTimeout(ctx context.Context, err error) error {
	if l, ok := errors.AsType[attemptTimeout](context.Cause(ctx)); ok && errors.Is(err, context.DeadlineExceeded) {
		return l
	}
	return err
}

// retryableStatuses are not about the notification: a secret, a path or a proxy is wrong, or
// it is too early.
var retryableStatuses = []int{
	http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly,
}

// statusError classifies an answer; nil is success.
func statusError(endpoint string, resp *http.Response, now time.Time) *DeliveryError {
	e := &DeliveryError{Endpoint: endpoint, Status: resp.StatusCode, Reason: ReasonOther}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		// Usually a proxy that wants a login, or a receiver that moved: its operator can fix
		// that.
		e.Reason, e.Retryable, e.Moved = Reason3xx, true, movedTo(resp)
	case code == http.StatusTooManyRequests:
		e.Reason, e.Retryable = Reason429, true
	case slices.Contains(retryableStatuses, code):
		e.Reason, e.Retryable = Reason4xx, true
	case code >= 400 && code < 500:
		e.Reason = Reason4xx
	case code >= 500:
		e.Reason, e.Retryable = Reason5xx, true
	}
	if e.Retryable {
		e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
	}
	return e
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

func isTLS(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[tls.RecordHeaderError](err) || isA[tls.AlertError](err) ||
		isA[x509.UnknownAuthorityError](err) || isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err) ||
		errors.Is(err, http.ErrSchemeMismatch)
}
