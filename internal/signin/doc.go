// Package signin finds out who asks on the console listener, keeps the sessions
// of browsers, and slows down those who guess.
//
// There are four ways: an API token (programs; everything), a session cookie after
// a sign-in with a password or at an OIDC provider (people; pages, and reading the
// API), a header of a trusted proxy (the same), and HTTP Basic (reading alone).
//
// # Guarantees
//
//   - What a browser sends by itself (cookie, proxy header, Basic) changes nothing
//     without the form token of the page it was shown on, see [Principal.FormToken].
//   - A session's id is 256 random bits; the store has its SHA-256 alone. It is new
//     at each sign-in, and of no use once it is idle, old, signed out of, or its
//     user is disabled, gone, or has another password.
//   - Roles are those of the users file at each request; those that an OIDC
//     provider gave live as long as the session.
//   - The header of a proxy counts from the addresses that are listed; from any
//     other it is refused.
//   - Guessing is locked out by name and address, which keeps nobody else
//     out; by name alone only after ten times as many, and never from an address
//     from which that person signed in before.
//   - No token, password or session id is logged or written into the audit trail.
//
// # Not guaranteed
//
// The counters are in memory: a restart forgets who was locked out.
//
// # Concurrency
//
// A [Authenticator] is safe for concurrent use and owns no goroutine.
//
// # Failure
//
// While the store cannot be used nobody signs in. Sessions that were seen before
// are still known, so that people can look.
package signin
