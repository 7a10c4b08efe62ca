// Package redlock takes locks on a majority of independent Redis masters. The client is
// a [lock.Client]; see [New] for what is different.
package redlock
