// Package record is the wire format that the lock library writes beside each
// lock, and the names of the keys it writes it under. It is versioned, needs
// nothing but the standard library, and decodes without the holder's help; what
// it cannot decode is a value to look at, never a panic.
//
// docs/wire-format.md specifies the same for other languages.
package record
