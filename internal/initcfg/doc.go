// Package initcfg proposes a first configuration from what a few sweeps of a
// server saw: which families of lock keys there are, and what would fit each.
//
// [Patterns] finds the families by name. A part of a name that is a number, a
// UUID, a hash, a date or something else made by a machine is variable, and so is
// a word where many different ones stand in the same place. What is left is the
// pattern: lock:order:42 and lock:order:43 are lock:order:*.
//
// [Propose] adds what was seen of each family, and [Write] makes the file.
// Nothing here does I/O, and everything is safe for concurrent use.
package initcfg
