// Package alert tells people: it turns transitions of findings and events of
// releases into messages, and delivers those of an outbox to each receiver.
//
// [Sender.Changes] says of which transitions which receivers are to be told, and in
// which group; [Sender.Release] makes the messages of an event of a release.
// Whoever writes the change that they tell of writes them with it, in one
// transaction. [Sender.Run] makes messages of the groups that are due and claims
// messages from there. A kind of receiver is one file: webhook.go, alertmanager.go,
// pagerduty.go, email.go, slack.go, dingtalk.go, feishu.go, wecom.go.
//
// # Guarantees
//
//   - What the outbox took is delivered, or given up where [Outbox.Bury] keeps it
//     for a replay: also over a restart and a kill -9 of the agent.
//   - For one finding, and for one request, a receiver gets events in their order:
//     a resolve never before its fire. It gets no resolve of what it was not told,
//     and while the agent runs none for a fire that certainly did not reach it.
//   - A message keeps its id and its bytes over all attempts, restarts and replays.
//     An attempt that may have arrived is repeated, so that a receiver can see an
//     id twice.
//   - One slow or dead receiver delays no other, and one message that a receiver
//     does not take delays only those of its own group or request; those that people
//     read come one at a time.
//   - After an outage of a receiver the first message that it accepts ends every
//     backoff. What is due is sent by urgency, then by age; what waits before an
//     urgent message in its group or request goes with it. Nobody is asked for a
//     decision on a request that is over.
//   - Nothing is given up silently: it is counted through [Hooks] and logged.
//   - A receiver's URL and secrets are in no log line and no error; only scheme
//     and host are.
//   - No redirect is followed, no proxy of the environment is used, and an
//     address inside the own network is refused after DNS resolution unless the
//     receiver says allow_private.
//
// # Not guaranteed
//
// Success is a 2xx status, and for chat services the code in the body; what the
// receiver does with the message is its own.
// While the outbox does not work, a receiver for which nothing waited there is
// told from memory ([Sender.Spare]); a crash takes what is only there.
//
// # Concurrency
//
// [Sender.Run] owns one goroutine for each receiver and one for each message under
// way, and returns after they ended. All methods are safe for concurrent use.
//
// # Failure
//
// Whatever another attempt may mend is repeated with exponential backoff and full
// jitter, not sooner than Retry-After says, until max_attempts or max_age. When
// three messages in a row did not arrive the receiver is left alone, and one
// message at a time finds out whether it works again. On shutdown what is due is
// sent for at most drain_timeout; the rest waits for the next start.
//
// docs/webhook.md is the receiver's side of all this.
package alert
