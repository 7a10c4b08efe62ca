// Package watch measures the live watch of package scanner on a real
// redis-server: how long a change takes to reach the sink, from 10 k to 1 M keys,
// and what watching costs the server per lock write, for locks of a plain token
// and for ours. RESULTS.md keeps the figures.
package watch
