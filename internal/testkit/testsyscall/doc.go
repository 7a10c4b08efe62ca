// Package testsyscall makes system calls fail, for tests of disks that fail. It works on
// Linux.
package testsyscall
