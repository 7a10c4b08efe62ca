// Package console is the second listener of the agent: the HTTP API under
// /api/v1, the pages for people, which read and change what the API does, and
// /-/reload. docs/openapi.yaml describes every route.
//
// # Guarantees
//
//   - A GET changes nothing.
//   - Without users everything is readable and nothing can be changed, and the
//     listener stays on loopback: any other address is refused, and so is a
//     request whose Host is not a loopback name (which is what a web page that
//     rebinds its DNS name would send).
//   - With users, reading needs any role. A change needs an API token and a JSON
//     body, or the form of a page that was shown to this person in this session;
//     never a request that another site began. Package internal/signin finds out
//     who asks, and bounds how often.
//   - Who a person is decides the [Releases] behind: it judges the role and
//     writes refusals into the audit trail.
//   - A change that was begun is finished when its client goes away.
//   - No token or password is logged. Errors are application/problem+json.
//
// # Not guaranteed
//
// Lists are what the last sweep saw. Limits count in memory and by address: a
// flood from many is for a proxy in front of the listener to keep out.
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
