// Package report says how locks were held: per class the quantiles of the holds
// that ended, the longest, contention, the worst keys, and which `expect` and TTL
// would fit. A [Recorder] collects it from sweeps and direct reads, a [Row] keeps
// one class in one hour, and [Build] makes the answer of them.
//
// # What a number means
//
// Nobody saw a hold begin and end to the millisecond. So each hold has two
// bounds, how long it lasted at least and at most, and a quantile has two as well:
// that of all lower bounds and that of all upper bounds. The true quantile of the
// holds that were seen lies between them. An upper bound that is not known makes
// the quantiles above it unknown too, and never smaller.
//
// Holds that began and ended between two looks are not in it. Where sweeps alone
// look, long holds are therefore met more often than short ones: quantiles of the
// work as a whole are smaller than these.
//
// # Concurrency
//
// A [Recorder] is safe for concurrent use. Rows and histograms are plain data and
// belong to one goroutine at a time.
package report
