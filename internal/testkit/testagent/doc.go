// Package testagent gives tests agents that are processes of their own, to be killed,
// frozen and started again, and receivers that hear what they tell. Only tests import
// it.
//
// An agent is the test binary once more: TestMain of a package that uses this one begins
// with [Child], and ends the process as that says. With [Options.Program] it is the
// program itself.
//
// # Guarantees
//
// [Agent.Start] returns when the agent says that it runs; its addresses are those that
// it says itself, so configurations name port 0. It is gone when the test ends, frozen
// or not, passed or not, and on Linux also when the process of the test ends before;
// one that does not end when it is asked to fails the test. The end of its log over all
// lives is printed when the test failed, and all of it kept under go test -artifacts.
//
// With [Options.Clocked] its wall clock is what [Agent.SetClock] says, for all that runs in
// it, from its first instruction on: on Linux on amd64, elsewhere the test is skipped.
//
// An [Ear] takes connections at one address as long as the test lasts, but for the time
// between [Ear.Down] and [Ear.Up]. A message whose id or form is wrong fails the test.
//
// # Not guaranteed
//
// The test binary has no limit of its memory, which the program sets itself.
//
// # Concurrency
//
// [Agent.Where], [Agent.PID] and [Agent.LogPath], all of [AlertLog] and all of [Ear] are
// safe for concurrent use. The other methods of [Agent] may fail the test by FailNow
// and belong to its goroutine.
//
// # Failure
//
// What the harness itself cannot do is fatal for the test.
package testagent
