// Package bench measures Locksteward beside what it is compared with, on real
// redis-server processes and in the same run. It is a module of its own so that
// what it compares with never becomes a dependency of Locksteward.
//
// `make bench` runs it; docs/scanner.md keeps the figures. The lock library is
// measured by command bench/locks.
package bench
