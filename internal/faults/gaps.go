package faults

// serverGaps are those of the rows 1 to 42.
func serverGaps() []Gap {
	return []Gap{
		{13, Library, true, "a step forward beyond the lease ends the hold: it looks like a machine that was suspended (5)."},
	}
}

// agentGaps are those of the rows 43 to 84.
func agentGaps() []Gap {
	return []Gap{
		{43, Library, true, "no push: the holder is told by its next renewal."},
		{47, Agent, true, "a target costs each of its servers up to five connections, not three: three of the pool, two of the watch. In a pool of one all would wait for whoever has it: when a connection goes dead under a sweep, changes would be told 3 s later. The watch's own two are asked nothing else, since a slow read there would look like silence."},
		{49, Agent, true, "a lock whose value is a constant is told two seconds after it lost its TTL, not one: it may be the next hold, between its SETNX and its EXPIRE."},
		{53, Agent, true, "a key whose name is empty is never a lock to the agent: a pattern of a class has a literal part. It is left alone."},
		{55, Agent, true, "patterns may have many stars: they are matched by the agent, in linear time and never by the server; character sets and what cannot be read are refused."},
		{64, Agent, true, "each sweep reads the value of each key that is or may be a lock, changed or not; those of other keys never."},
		{76, Agent, true, "a release raises no fence, and could not: the next holder is given a greater one anyway, and what refuses a late write is the resource, by the fences that it has seen. Until the next holder has written there, a late write of the old one is taken."},
		{79, Agent, true, "a write-ahead log that is torn, or has a flipped bit in its middle, ends there; only a shorter audit trail shows it."},
	}
}
