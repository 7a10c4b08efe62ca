// Package push receives what servers publish to this process: one connection per node,
// however many channels and waiters there are. What is pushed is a hint; nothing may
// depend on its arrival.
package push
