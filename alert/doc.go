// Package alert tells people: it turns transitions of findings into webhook
// messages and delivers them to each receiver in order.
//
// # Guarantees
//
//   - [Dispatcher.Notify] never waits for the network.
//   - For one finding, a receiver gets transitions in their order: a resolve
//     never before its fire, and no resolve at all for a fire that certainly did
//     not reach it.
//   - A message keeps its id and its bytes over all attempts. An attempt that
//     may have arrived is repeated, so that a receiver can see an id twice.
//   - One slow or dead receiver delays no other.
//   - Nothing is dropped silently: whatever is given up is counted through
//     [Hooks] and logged.
//   - A receiver's URL and secrets are in no log line and no error; only scheme
//     and host are.
//   - No redirect is followed, no proxy of the environment is used, and an
//     address inside the own network is refused after DNS resolution unless the
//     receiver says allow_private.
//
// # Not guaranteed
//
// The queue is in memory and bounded: what a crash or the bound takes is lost.
// A message that its receiver keeps answering with 5xx holds up those behind it
// until max_attempts or max_age.
// Success is a 2xx status; what the receiver does with the message is its own.
//
// # Concurrency
//
// [Dispatcher.Run] owns one goroutine for each receiver and returns after they
// ended. All methods are safe for concurrent use.
//
// # Failure
//
// Connection faults, timeouts, 408, 425, 429 and 5xx are retried with
// exponential backoff and full jitter, not sooner than Retry-After says, until
// max_attempts or max_age; other 4xx and all 3xx are given up at once. On
// shutdown the queues are drained for at most drain_timeout.
//
// docs/webhook.md is the receiver's side of all this.
package alert
