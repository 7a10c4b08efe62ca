// Package redisproc runs real redis-server processes on private ports or
// sockets of the loopback, for the tests (through internal/testkit/testredis) and for
// the demo. It is no part of the agent.
//
// # Guarantees
//
// [Start] returns only when the server that answers at the address is the very
// process it started: its log says that it listens, it answers, and where it
// may be asked, its process id is ours. A port is held by a lock file for as
// long as the [Proc] lives, so that no other Proc of this machine takes it
// between [Proc.Kill] and [Proc.Restart]. After [Proc.Close] no process (stopped
// by SIGSTOP or not), no directory of ours and no port is left; the empty lock
// files of ports stay in the temporary directory. On Linux the server dies with
// the process that started it, however that one ends.
//
// # Not guaranteed
//
// Data outlives no restart unless the caller's configuration asks for it
// (appendonly). Ports are private by agreement: a foreign program may still
// take one while its server is down, and then Restart says so. On systems
// other than Linux a crash of the parent leaves the server running.
//
// # Concurrency
//
// All methods of [Proc] are safe for concurrent use; those that change the
// process run one after another. Each running server costs one goroutine
// locked to its thread, which ends with the process.
//
// # Failure
//
// Errors name the server and carry the last lines of its log. A server that
// ends by itself is seen at [Proc.Done]; it is not started again.
package redisproc
