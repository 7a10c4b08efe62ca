// Package console is the second listener of the agent: the HTTP API under
// /api/v1, one read-only overview page, and /-/reload. docs/api.md describes
// every route.
//
// # Guarantees
//
//   - A GET changes nothing.
//   - Without users everything is readable and nothing can be changed, and the
//     listener stays on loopback: any other address is refused, and so is a
//     request whose Host is not a loopback name (which is what a web page that
//     rebinds its DNS name would send).
//   - With users, reading needs any role, and a change needs an API token, a
//     JSON body and a same-origin or non-browser client.
//   - Who a person is decides the [Releases] behind: it judges the role and
//     writes refusals into the audit trail.
//   - A change that was begun is finished when its client goes away.
//   - No token or password is logged. Errors are application/problem+json.
//
// # Not guaranteed
//
// Lists are what the last sweep saw. There is no rate limit but the cost of
// bcrypt; put a proxy in front of a listener that strangers can reach.
//
// # Concurrency
//
// [Server.Run] owns all goroutines and returns after they ended. All methods
// are safe for concurrent use; users and certificates are swapped as a whole.
//
// # Failure
//
// [NewServer] listens, so that an address in use is an error of the start. A bad
// users file at a reload changes nothing.
package console
