// Package rules judges: it is given what a scan saw of locks and the policy of
// their classes, and says what is wrong, how surely, and what to do about it.
//
// One rule is one file here, one page docs/rules/<group>/<name>.md, and one
// folder of fixtures testdata/<group>-<name>/. Rules are pure functions from
// [Input] to [Verdict]; [Engine] turns their verdicts into findings that are
// pending, firing or resolved, and into the transitions that people are notified of.
//
// # Guarantees
//
//   - Pure: no clock, file, network, logger or goroutine. All times are the
//     server times in the input.
//   - A finding fires only when its rule said so for as long as `for:` asks, in
//     at least two looks if that is more than 0.
//   - A finding resolves only on evidence: its lock was looked at and the rule no
//     longer says so, its hold is known to be over, or a complete sweep did not
//     meet it. An incomplete sweep that merely does not show a lock resolves
//     nothing.
//   - People who were notified of a finding are notified of its end: a finding that notifies
//     ([Notifies]) gets a resolved transition before its severity falls below
//     that.
//   - The same input in the same order gives the same output in the same order,
//     event ids apart.
//   - Candidates are never judged. No token is in a finding, only the kind of
//     token.
//
// # Not guaranteed
//
//   - Holds that come and go between two looks are not judged.
//   - A server clock that jumps makes ages and `for:` wrong by the jump; one that
//     goes back starts pending findings anew.
//
// # Concurrency
//
// [Engine] is safe for concurrent use. Sweeps and direct reads of one target
// must be handed over in the order they were made. Rules have no state.
//
// # Failure
//
// No input makes the package panic. Facts that are missing make a rule say
// nothing: doubt means that the lock is alive.
package rules
