// Package oidclogin signs people in at an OpenID Connect provider: authorization
// code with PKCE, state and nonce.
//
// # Guarantees
//
//   - The way back is bound to the browser that began it, by a sealed cookie, and to
//     ten minutes.
//   - An ID token counts if it is signed by a key of the provider with an asymmetric
//     algorithm, is for this client, of this issuer, not expired, and has the nonce
//     of this sign-in. An e-mail address names a person only if the provider verified
//     it.
//   - Nothing is sent anywhere but to the provider, over TLS (or to loopback), and
//     no redirect is followed.
//   - No code, token or secret is in an error.
//
// # Not guaranteed
//
// What a provider says of groups counts until the session ends: somebody who is
// taken out of a group keeps its roles until then, unless they are disabled here.
//
// # Concurrency
//
// A [Provider] is safe for concurrent use.
//
// # Failure
//
// The provider is asked for its addresses at the first sign-in, so that an agent
// starts without it, and again until it answers.
package oidclogin
