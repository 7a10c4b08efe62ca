package faults

func processRows() []Row {
	return []Row{
		{
			Number: 1, Fault: "a holder is stopped past its TTL, another takes the lock, the first goes on",
			Library: "its context has ended when its code next runs; a store with fences takes none of its late writes; a renewal neither succeeds nor makes the lock anew",
			Agent:   "shows the change of the holder, and that the first one may still write",
		},
		{
			Number: 2, Fault: "a process is stopped between the answer of the server and the moment it reads it",
			Library: "the acquire is refused, since the lease is over, and the key is given back",
		},
		{
			Number: 3, Fault: "only the goroutine that renews is late (no CPU)",
			Library: "a timer declares the loss at the end of the lease, whatever the renewal does",
		},
		{
			Number: 4, Fault: "stalls of 50 to 500 ms every second, like those of a garbage collection",
			Library: "no hold is lost where the TTL is ten times the stall; late renewals are counted",
		},
		{
			Number: 5, Fault: "the machine is suspended: the monotonic clock stands still, the wall clock jumps",
			Library: "taken for a loss",
		},
		{
			Number: 6, Fault: "kill -9 of a holder",
			Library: "the key is gone after at most its TTL, a waiter is served within 50 ms of that, no companion key stays",
			Agent:   "says that a killed holder left a lock only where that lock has no TTL",
		},
		{
			Number: 7, Fault: "kill -9 of one, some or all that wait in a fair queue",
			Library: "who lives is served within 200 ms for each dead one",
		},
		{
			Number: 8, Fault: "the agent's process is stopped (SIGSTOP) while its watch is on",
			Agent: "the server keeps at most 32 MiB for it and closes the connection; when it goes on it forgets what it knew, looks at everything again and counts the time as blind",
		},
		{
			Number: 9, Fault: "the agent's clock is an hour off, by a step or a drift",
			Agent: "ages come from the server's time and its PTTL: no verdict changes by more than a second",
		},
		{
			Number: 10, Fault: "the server's clock jumps forward",
			Library: "the loss is known at the next renewal or by push",
			Agent:   "a crowd of expiries is put down to the step of the clock",
		},
		{
			Number: 11, Fault: "the server's clock jumps backward",
			Library: "leases last longer, and nothing unsafe comes of it",
			Agent:   "a PTTL above what its class allows is a finding",
		},
		{
			Number: 12, Fault: "the clocks of client and server run at different rates",
			Library: "safe up to the documented ratio; two clocks of which one runs twice as fast are not, and a test shows it",
		},
		{
			Number: 13, Fault: "a step of the wall clock on the holder alone",
			Library: "no effect: a lease goes by the monotonic clock",
		},
	}
}
