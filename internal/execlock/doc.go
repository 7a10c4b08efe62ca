// Package execlock runs a command while it holds a lock: what 'locksteward exec'
// does, without flags and exit codes.
//
// Three processes work together:
//
//	exec ──lock/──▶ Redis        acquires, renews, releases
//	 │ │
//	 │ └─pipe──▶ guard           knows the command's group and until when the lock is held
//	 │              │
//	 └──starts──▶ command ◀──────┘ stopped by exec, or by the guard in its place
//
// A lock whose holder is dead or frozen while its job runs on is two jobs at
// once. Therefore exec starts a second process beside the command, the guard.
// Exec tells it after each renewal for how long the lock is held. It stops the
// command when the pipe ends without a word (exec was killed), or when that time
// is over without an answer (exec is frozen, the machine was suspended).
// A parent-death signal of the kernel would do less: it reaches only the first
// process of the command, sends one signal, exists on Linux alone, and knows
// nothing of a frozen exec.
//
// # Concurrency
//
// [Run] and [Guard] handle the signals of the process that they run in, so that
// a process calls one of them, once.
//
// # Not guaranteed
//
// Who kills exec and guard together, or freezes both, leaves the command alone. A
// command that ignores SIGTERM works for up to the grace after its lock was lost,
// and one that left its process group (setsid) is not stopped. What
// the command writes to should therefore refuse an old fence.
package execlock
