// Package lockstore opens the lock store that the URL of a target names: Redis, or one of
// the others. It is where a scheme becomes a [source.Source] and a [source.Releaser].
//
// All of it is safe for concurrent use, except that [Store.Source] is called once.
package lockstore
