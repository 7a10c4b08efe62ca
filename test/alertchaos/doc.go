// Package alertchaos shows that alerts are never lost: agents on real servers are
// killed with SIGKILL at random points while findings fire and resolve, receivers
// flap and the disk fills, and what the receivers got is compared with what the
// agents had committed and with what is so. It holds tests only.
//
// # Guarantees
//
// After all is well again a run has, for each receiver:
//
//   - lost 0: no committed transition that never arrived, and no anomaly that is
//     still there without its fire;
//   - no resolve before its fire, by first deliveries;
//   - copies only under the same webhook-id and with the same bytes.
//
// The control is the same agent whose queue is emptied at each kill, as one in
// memory would be: it must lose something.
//
// # Not guaranteed
//
// What is sent from memory while the store takes nothing, by an agent that is killed
// before the store works again, is sent once more by the next one: nobody could write
// down that it was sent. Runs count these.
//
// # Running
//
// `make test` kills 30 times, `make chaos` 1,000 times (-alertchaos.kills).
// docs/alerting.md has the figures.
package alertchaos
