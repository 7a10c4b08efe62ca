// Package takeover shows that several agents on one PostgreSQL lose nothing and do
// nothing twice while they take over from each other: processes are killed with
// SIGKILL, frozen with SIGSTOP and cut off from the database, at random, while locks
// break and are released through whichever replica answers. It holds tests only.
//
// # Guarantees
//
// After all is well again a run has:
//
//   - lost 0: of every broken lock the receiver got its fire, and of every one that was
//     freed its end;
//   - no end before its fire, by first deliveries;
//   - no release twice: a client that took a lock after it was released has it still;
//   - every request has one outcome, and the audit trail verifies;
//   - other replicas had the leases 3 s after a fault: in every take-over of a long run,
//     and in half of those of a short one, which shares its machine with other tests. None
//     took longer than 10 s. The figures are those of docs/ha.md.
//
// # Not guaranteed
//
// Redis and the receiver are not disturbed here: package alertchaos does that.
//
// # Running
//
// `make test` has 20 take-overs, `make chaos` 200 (-takeover.faults).
package takeover
