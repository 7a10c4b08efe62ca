package faults

// serverGaps are those of the rows 1 to 42.
func serverGaps() []Gap {
	return []Gap{
		{29, Agent, true, "told where the agent had released the lock. One that its own holder had released looks like any lock whose holder is silent; the restart is told."},
		{31, Agent, true, "the failover is told, and not which locks may have been lost with it."},
		{34, Agent, true, "a replica is refused, so that nothing is seen there: no result says as of which offset it is."},
	}
}

// agentGaps are those of the rows 43 to 84.
func agentGaps() []Gap {
	return []Gap{
		{43, Library, true, "no push: the holder is told by its next renewal."},
		{47, Agent, true, "a target costs each of its servers up to five connections, not three: three of the pool, two of the watch."},
		{49, Agent, true, "a lock that has lost its TTL is seen within a second, and told only after a second look two seconds later: who sets the TTL in a command of its own is no finding."},
		{50, Library, true, "a hundred new replication ids, but six crashes, and none by DEBUG CRASH-AND-RECOVER."},
		{50, Agent, true, "a hundred new replication ids, but three crashes, and none by DEBUG CRASH-AND-RECOVER."},
		{55, Agent, true, "patterns may have many stars: they are matched by the agent, in linear time and never by the server; character sets and what cannot be read are refused."},
		{76, Agent, true, "a release raises no fence, and could not: the next holder is given a greater one anyway, and what refuses a late write is the resource, by the fences that it has seen. Until the next holder has written there, a late write of the old one is taken."},
	}
}
