// Package locksteward holds the nouns of Locksteward as plain data: what a
// scan sees of a lock ([Observation], [Lock], [Sweep]), what a rule says of it
// ([Finding]), and the human path to free it ([Request], [Entry]).
//
//	Redis ─▶ scanner ──Sweep──▶ rules ──Finding──┬──▶ exporter   metrics
//	            │ formats (decode)               ├──▶ alert      webhooks
//	applications ─▶ lock ─▶ lock/record          └──▶ release    requests ─▶ Redis
//	                          console, CLI ──approvals──────┘      everything ─▶ store
//
// The package imports the standard library alone and does no I/O. It encodes and
// formats its own values, and judges a little by them alone, such as whether an age
// that a value tells is to be believed ([Lock.WrittenAge]). It embeds the example
// configuration and the pages of the rules. Every value may be copied; none is safe
// for concurrent mutation, all are safe for concurrent reading.
//
// Times are the Redis server's clock unless a field says otherwise: an agent
// whose own clock is wrong must still report right ages.
package locksteward
