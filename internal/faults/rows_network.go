package faults

func networkRows() []Row {
	return []Row{
		{
			Number: 14, Fault: "an acquire takes effect and its answer is lost",
			Library: "a repeat under the same id has the same hold and fence; if it came too late the key is given back; it never outlives its TTL",
		},
		{
			Number: 15, Fault: "a request is lost",
			Library: "repeated, with one effect",
		},
		{
			Number: 16, Fault: "the Redis client repeats a command by itself",
			Library: "switched off or harmless: an acquire whose answer is lost raises the fence by one acquisition",
		},
		{
			Number: 17, Fault: "latency that changes, packets of one byte, little bandwidth",
			Library: "no answer is taken for another one's; the validity counts from before the request",
		},
		{
			Number: 18, Fault: "a connection stays open and carries nothing",
			Library: "every call ends by its deadline",
			Agent:   "the watch finds out within seconds, closes the connection and looks at everything again",
		},
		{
			Number: 19, Fault: "a holder is cut off from the server, others are not",
			Library: "it knows of its loss before the server lets the lock go",
		},
		{
			Number: 20, Fault: "two of three nodes of a Redlock cannot be reached",
			Library: "the acquire fails within its time; what it left on the third is cleared",
		},
		{
			Number: 21, Fault: "requests arrive, answers do not",
			Library: "as 14, for many; a store with fences stays in order",
		},
		{
			Number: 22, Fault: "the connection pool is exhausted",
			Library: "renewal and release have connections of their own and lose no lock; an acquire that gets none says so, not that the lock is taken",
		},
		{
			Number: 23, Fault: "slow commands block the server",
			Library: "renewals time out, and the context ends when the lease does, not before",
			Agent:   "its budget gives way within a second and names the reason",
		},
		{
			Number: 24, Fault: "connections are reset, again and again",
			Library: "dials anew with a growing pause; neither descriptors nor goroutines leak",
			Agent:   "dials anew with a growing pause; neither descriptors nor goroutines leak",
		},
		{
			Number: 25, Fault: "a TLS certificate expires or is replaced while connections are open",
			Agent: "new connections use the new one; says so 14 days before one expires",
		},
		{
			Number: 26, Fault: "a name leads to another server",
			Agent: "sees the run id change, forgets what it knew of the old one and says so",
		},
	}
}
