package api

import (
	"errors"
	"net/http"

	"github.com/locksteward/locksteward"
)

// ProblemType is the media type of every error answer (RFC 9457).
const ProblemType = "application/problem+json"

// Code names a kind of problem for programs.
type Code string

// The kinds of problems.
const (
	CodeInvalid         Code = "invalid"         // 400
	CodeUnauthenticated Code = "unauthenticated" // 401
	CodeRefused         Code = "refused"         // 403
	CodeNotFound        Code = "not_found"       // 404
	CodeMethod          Code = "method_not_allowed"
	CodeConflict        Code = "conflict"  // 409
	CodeTooLarge        Code = "too_large" // 413
	CodeMediaType       Code = "unsupported_media_type"
	CodeMisdirected     Code = "misdirected" // 421
	CodeTooMany         Code = "too_many"    // 429
	CodeInternal        Code = "internal"    // 500
	CodeUnavailable     Code = "unavailable" // 503
)

var statuses = map[Code]int{
	CodeInvalid:         http.StatusBadRequest,
	CodeUnauthenticated: http.StatusUnauthorized,
	CodeRefused:         http.StatusForbidden,
	CodeNotFound:        http.StatusNotFound,
	CodeMethod:          http.StatusMethodNotAllowed,
	CodeConflict:        http.StatusConflict,
	CodeTooLarge:        http.StatusRequestEntityTooLarge,
	CodeMediaType:       http.StatusUnsupportedMediaType,
	CodeMisdirected:     http.StatusMisdirectedRequest,
	CodeTooMany:         http.StatusTooManyRequests,
	CodeInternal:        http.StatusInternalServerError,
	CodeUnavailable:     http.StatusServiceUnavailable,
}

// Problem is an error answer. It is an error itself: errors.Is finds the
// sentinel of package locksteward of its code.
type Problem struct {
	// Type is "urn:locksteward:problem:" and the code.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong and what to do.
	Detail string `json:"detail"`
	Code   Code   `json:"code"`
}

// NewProblem returns the problem of a kind; an unknown code becomes internal.
func NewProblem(code Code, detail string) *Problem {
	status, ok := statuses[code]
	if !ok {
		code, status = CodeInternal, http.StatusInternalServerError
	}
	return &Problem{
		Type: "urn:locksteward:problem:" + string(code), Title: http.StatusText(status),
		Status: status, Detail: detail, Code: code,
	}
}

// ProblemFor maps an error to the problem that tells it. An error without a
// sentinel is internal, and its text stays inside: it was not written for the
// caller.
func ProblemFor(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	switch {
	case errors.Is(err, locksteward.ErrInvalid):
		return NewProblem(CodeInvalid, err.Error())
	case errors.Is(err, locksteward.ErrRefused):
		return NewProblem(CodeRefused, err.Error())
	case errors.Is(err, locksteward.ErrNotFound):
		return NewProblem(CodeNotFound, err.Error())
	case errors.Is(err, locksteward.ErrConflict):
		return NewProblem(CodeConflict, err.Error())
	default:
		return NewProblem(CodeInternal, "the agent could not do this: see its log")
	}
}

// Error returns the detail, which is a sentence for people.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Unwrap returns the sentinel of the code, nil if there is none.
func (p *Problem) Unwrap() error {
	switch p.Code {
	case CodeInvalid, CodeTooLarge, CodeMediaType, CodeMethod:
		return locksteward.ErrInvalid
	case CodeUnauthenticated, CodeRefused, CodeMisdirected, CodeTooMany:
		return locksteward.ErrRefused
	case CodeNotFound:
		return locksteward.ErrNotFound
	case CodeConflict:
		return locksteward.ErrConflict
	default:
		return nil
	}
}
