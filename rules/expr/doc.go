// Package expr compiles and evaluates the expressions that people write into
// the configuration: `when` of a custom rule and `dead_when` of a class. The
// language is CEL over the facts of one lock; docs/expressions.md lists every
// fact and function and is tested against this package.
//
// # Guarantees
//
//   - What [Compile] accepts is of type bool, names only facts that exist, and
//     costs at most [MaxCost] by an estimate over the largest usual values.
//   - [Program.Eval] never panics and stops at [MaxCost] whatever the lock.
//   - A fact that is not known makes what is built on it an error, and an error
//     is not true: `lock.age > duration('2h')` and `!(lock.age > duration('2h'))`
//     are both not true while the age is not known. Only where the rest of the
//     expression decides alone (`true || …`) does it have an outcome.
//   - No token is reachable, only its kind.
//
// # Not guaranteed
//
//   - has() asks whether a fact is known and is never an error: who builds a
//     verdict on !has(…) takes absence for evidence.
//
// # Concurrency
//
// A [Program] is immutable and safe for concurrent use.
package expr
