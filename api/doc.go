// Package api is the JSON contract of Locksteward: the shapes that
// `locksteward scan --output json`, the HTTP API and the webhooks have in
// common, and their conversion from the nouns of package locksteward.
//
// Rules that hold for every shape: names are snake_case; durations are integer
// milliseconds and say so (`_ms`); times are RFC 3339 in UTC with at most
// milliseconds; a list is never null; what is not known is null or absent and
// never 0. A key that is not valid UTF-8 is given as `key_b64` too, with `key`
// escaped for people. Fields may be added; none is renamed, retyped or removed
// within version 1.
//
// The package is pure data and safe for concurrent use.
package api
