// Package connect opens Redis deployments for the agent: one server, a master
// behind Sentinel, or a Cluster, all the same to the rest of the program.
//
// # Guarantees
//
//   - [Open] does no I/O: a target may be away when the agent starts.
//   - Every command is bounded: dial, read, write and pool waits time out.
//   - At most Config.PoolSize connections per server and client.
//   - No error, String or log line holds a password.
//
// # Not guaranteed
//
//   - A master that [Conn.Masters] returned may be demoted a moment later; who
//     needs certainty compares run ids and topology before and after.
//
// # Concurrency
//
// [Conn] is safe for concurrent use.
//
// # Failure
//
// Commands fail with go-redis's errors; [Explain] says in one sentence what that
// means and what to do.
package connect
