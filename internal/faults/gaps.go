package faults

// serverGaps are those of the rows 1 to 42.
func serverGaps() []Gap {
	return []Gap{
		{9, Agent, true, "no clock is slewed: those of the agent and of the server are off, or set by steps."},
		{13, Library, true, "a step forward beyond the lease ends the hold: it looks like a machine that was suspended (5)."},
		{20, Library, true, "without a deadline of the caller a Redlock acquire may fail up to 300 ms and two NodeTimeouts after Options.Timeout: the last attempt may begin a pause later, and its votes are taken back before it returns."},
		{27, Library, true, "no push: the holder is told by its next renewal."},
		{29, Agent, true, "told where the agent had released the lock. One that its own holder had released looks like any lock whose holder is silent; the restart is told."},
		{31, Agent, true, "the failover is told, and not which locks may have been lost with it."},
		{34, Agent, true, "a replica is refused, so that nothing is seen there: no result says as of which offset it is."},
		{37, Library, true, "an explicit Extend is one question: while the keys of a lock are on two nodes because its slot moves, it returns a temporary ServerError (TRYAGAIN) and is to be called again. Renewals, acquires and releases ask again by themselves."},
	}
}

// agentGaps are those of the rows 43 to 84.
func agentGaps() []Gap {
	return []Gap{
		{43, Library, true, "no push: the holder is told by its next renewal."},
		{44, Agent, true, "NOREPLICAS is told nowhere: the agent writes nothing but releases. MISCONF is told by its cause, as server/not-durable."},
		{47, Agent, true, "a target costs each of its servers up to five connections, not three: three of the pool, two of the watch. In a pool of one all would wait for whoever has it: when a connection goes dead under a sweep, changes would be told 3 s later. The watch's own two are asked nothing else, since a slow read there would look like silence."},
		{49, Agent, true, "a lock whose value is a constant is told two seconds after it lost its TTL, not one: it may be the next hold, between its SETNX and its EXPIRE."},
		{50, Library, true, "a hundred new replication ids, but six crashes, and none by DEBUG CRASH-AND-RECOVER."},
		{53, Agent, true, "a key whose name is empty is never a lock to the agent: a pattern of a class has a literal part. It is left alone."},
		{55, Agent, true, "patterns may have many stars: they are matched by the agent, in linear time and never by the server; character sets and what cannot be read are refused."},
		{64, Agent, true, "each sweep reads the value of each key that is or may be a lock, changed or not; those of other keys never."},
		{70, Agent, true, "a constant value that has a TTL is told apart by its expiry, and needs no second confirmation; one without a TTL does."},
		{74, Agent, true, "the trail says released in the same words, whether the answer or the record of the execution told it."},
		{75, Agent, true, "caps are by the hour. Beyond them people are refused, and what the agent would release by itself waits for one approval: no rate makes a second approval necessary."},
		{76, Agent, true, "a release raises no fence, and could not: the next holder is given a greater one anyway, and what refuses a late write is the resource, by the fences that it has seen. Until the next holder has written there, a late write of the old one is taken."},
		{78, Agent, true, "after a failed fsync no other file is begun: the agent says that the commit is not known, and goes on with the same one."},
		{79, Agent, true, "nothing is set aside, and no metric tells of damage: the log and the audit's verification do. A write-ahead log that is torn, or has a flipped bit in its middle, ends there."},
		{82, Agent, true, "agents that are cut off from each other tell under different ids, whether each has a store of its own or one of them lost the database that they share; while they share it, only the one that has the target tells."},
		{84, Agent, true, "messages for people list the worst and count the rest, which may be critical too in a storm; machines are told of all."},
	}
}
