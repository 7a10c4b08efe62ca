package faults

func serverRows() []Row {
	return []Row{
		{
			Number: 27, Fault: "the server restarts without its data",
			Library: "the context ends at the next renewal, or by push within a round trip",
			Agent:   "tells of the restart; no lock counts as released by its holder",
		},
		{
			Number: 28, Fault: "the server is killed and its append-only file lacks the last second",
			Library: "as 27 for the locks of that second; fences grow all the same",
		},
		{
			Number: 29, Fault: "the server comes back with an old snapshot",
			Library: "a lock that was released and is back belongs to nobody: its old holder cannot have it again",
			Agent:   "says that a lock is back whose end it had seen, whoever ended it",
		},
		{
			Number: 30, Fault: "a node of a Redlock restarts without its data, at once or after the longest TTL",
			Library: "at once breaks the exclusion, and a test shows it; the guard MinUptime restores it",
		},
		{
			Number: 31, Fault: "a failover loses a lock that was not replicated yet (Sentinel, Cluster)",
			Library: "a second client gets it, and a store with fences refuses the first",
			Agent:   "tells of the locks that may be lost: those that the replica had not heard of",
		},
		{
			Number: 32, Fault: "an old master comes back and is demoted",
			Library: "a client of it is refused, or succeeds in vain for a moment; fences at the store stay in order",
		},
		{
			Number: 33, Fault: "a server that only reads",
			Library: "a typed error, no storm of repeats (at most 50 a second), and the master is found anew",
		},
		{
			Number: 34, Fault: "reads from a replica: late, and blind to what has expired",
			Agent: "never takes a replica for a master: no release rests on it, and what is seen there says as of which offset",
		},
		{
			Number: 35, Fault: "PTTL of 0, -1 and -2",
			Agent: "three meanings: lives for less than a millisecond, has no TTL, is gone",
		},
		{
			Number: 36, Fault: "a Cluster has no master for some slots (CLUSTERDOWN)",
			Library: "a typed error",
			Agent:   "the sweep is incomplete and says so; the other masters are swept",
		},
		{
			Number: 37, Fault: "the slot of a lock moves (MOVED, ASK, TRYAGAIN)",
			Library: "the lock survives with its TTL and can be released",
			Agent:   "no lock is shown twice",
		},
		{
			Number: 38, Fault: "a sweep meets a reshard or a failover",
			Agent: "the master is swept anew or the sweep is incomplete; nothing counts twice",
		},
		{
			Number: 39, Fault: "the server loads its data (LOADING)",
			Library: "waits with growing pauses",
			Agent:   "waits, says that the target cannot be read, and resolves nothing",
		},
		{
			Number: 40, Fault: "a script blocks the server (BUSY)",
			Library: "a typed error; the script is left alone",
			Agent:   "waits and resolves nothing; the script is left alone",
		},
		{
			Number: 41, Fault: "the server has forgotten a script (flush, restart, failover)",
			Library: "sent in full once, and nobody notices",
			Agent:   "a release does not depend on scripts that the server keeps",
		},
		{
			Number: 42, Fault: "the server is out of memory and evicts nothing",
			Library: "the acquire fails and leaves nothing; releases still work",
			Agent:   "sweeps go on; a release still works",
		},
		{
			Number: 43, Fault: "locks are evicted",
			Library: "the loss is known at once, by push",
			Agent:   "a policy that can evict locks is a finding; evictions are counted",
		},
		{
			Number: 44, Fault: "the server takes no writes (MISCONF, NOREPLICAS, MASTERDOWN)",
			Library: "a typed error, and back to normal by itself",
			Agent:   "told once, and back to normal by itself",
		},
		{
			Number: 45, Fault: "CLIENT PAUSE, or the pause of a failover",
			Library: "calls end in time; nothing takes effect twice after the pause",
			Agent:   "calls end in time; a lock whose time is over stays over",
		},
		{
			Number: 46, Fault: "the password or the rights of a user change",
			Agent: "logs in anew with the new password of its file; within 5 s; says which command is refused, a metric of each too",
		},
		{
			Number: 47, Fault: "the server has no room for another client, or drops some",
			Agent: "dials anew with a growing pause and holds at most three connections to a node",
		},
		{
			Number: 48, Fault: "FLUSHALL, FLUSHDB, SWAPDB",
			Library: "every context ends",
			Agent:   "looks at everything again and tells of it once, not once for each lock",
		},
		{
			Number: 49, Fault: "others rename, copy, persist or expire a lock",
			Library: "the release of a renamed lock says that it is not held",
			Agent:   "sees another hold; a lock without TTL is told within a second",
		},
		{
			Number: 50, Fault: "the server changes its replication id, or crashes and starts again, a hundred times each",
			Library: "works again each time",
			Agent:   "works again each time",
		},
	}
}
