// Package alert makes notifications of finding events and release events, and delivers
// them from an outbox to each receiver.
//
// [Sender.Events] returns for transitions of findings which receivers are notified, and in
// which group; [Sender.Release] makes the notifications about a release event. The caller
// writes them to the outbox in the transaction of the change that they report.
// [Sender.Run] makes notifications of the groups that are due and delivers what it claims
// from the outbox. A kind of receiver is one file: webhook.go, alertmanager.go,
// pagerduty.go, email.go, slack.go, dingtalk.go, feishu.go, wecom.go.
//
// What a receiver knows is its delivery state: in the outbox the findings that it knows to
// fire, in memory ([deliveryState]) what was delivered since the start and the outbox may
// not have yet.
//
// # Guarantees
//
//   - What the outbox took is delivered, or becomes a dead letter that can be retried:
//     also over a restart and a kill -9 of the agent.
//   - For one finding, and for one request, a receiver gets events in their order: a
//     resolve never before its fire. It gets no resolve of a finding that it does not
//     know, and while the agent runs none for a fire that certainly did not arrive.
//   - A notification keeps its id and its bytes over all attempts, restarts and retries. An
//     attempt that may have arrived is repeated, so that a receiver can see an id twice.
//   - One slow or dead receiver delays no other, and one notification that a receiver
//     refuses delays only those of its own group or request; those that people read are
//     sent one at a time.
//   - After an outage of a receiver the first notification that it accepts ends every
//     backoff. What is due is sent by urgency, then by age; what waits before an urgent
//     notification in its group or request goes with it. Nobody is asked for a decision on
//     a request that has ended.
//   - Nothing is given up silently: it is counted through [Hooks] and logged.
//   - A receiver's URL and secrets are in no log line and no error; only scheme and host
//     are.
//   - No redirect is followed, no proxy of the environment is used, and an address inside
//     the own network is refused after DNS resolution unless the receiver has
//     allow_private.
//
// # Not guaranteed
//
// Success is a 2xx status, and for chat services the code in the body; what the receiver
// does with the notification is its own.
// While the outbox fails, notifications are sent from memory to receivers for which nothing
// waits there ([Sender.SendFromMemory]); a crash loses what is only there.
//
// # Concurrency
//
// [Sender.Run] owns three goroutines for each receiver and one for each notification in
// flight, and returns after they ended. All methods are safe for concurrent use. The order
// of mutexes: Sender.mu, then one mutex of a worker or its parts, never two of these. None
// is held over I/O, a callback or a wait.
//
// # Failure
//
// What another attempt may repair is retried with exponential backoff and full jitter, not
// sooner than Retry-After, until max_attempts or max_age. When three notifications in a
// row fail the circuit opens, and one notification at a time finds out whether the receiver
// works again. On shutdown what is due is sent for at most drain_timeout; the rest waits
// for the next start.
//
// docs/webhook.md is the receiver's side of all this.
package alert
