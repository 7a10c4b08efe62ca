// Package endtoend shows the whole chain on real servers: an agent, its lock stores,
// Prometheus with the shipped rules, and Alertmanager, all started by the test. It holds tests
// only.
//
// # Guarantees
//
// A broken lock becomes a finding, an alert in Prometheus, alerts in Alertmanager by
// both ways (Prometheus's, and the agent's own receiver) and a signed message at a
// webhook; when two people have it released through the agent, all of them resolve.
//
// A lock of PostgreSQL and one of etcd become findings, metrics and messages; their release is
// previewed, approved by a second person and executed, a waiter has the lock, and the audit
// trail names each step.
//
// # Not guaranteed
//
// Prometheus scrapes and evaluates every second here, and the shipped rules are a copy
// whose windows (2 m, to bridge failed scrapes) are 5 s: else the test would wait two
// minutes for the end. Nothing else of them is changed.
package endtoend
