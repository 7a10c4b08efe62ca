package faults

func releaseRows() []Row {
	return []Row{
		{
			Number: 66, Fault: "the lock expires between the look and the release",
			Agent: "already gone: nothing is deleted, and the trail says so",
		},
		{
			Number: 67, Fault: "the lock was released and another has taken it",
			Agent: "the hold is not the approved one: nothing is deleted",
		},
		{
			Number: 68, Fault: "the same owner has taken it again",
			Agent: "another hold: refused; the model shows that the value alone would not tell",
		},
		{
			Number: 69, Fault: "the holder has renewed since the approval",
			Agent: "alive: not released unless the policy says otherwise",
		},
		{
			Number: 70, Fault: "a lock of another library without a token",
			Agent: "told apart by value, expiry and type; a constant value needs a second confirmation",
		},
		{
			Number: 71, Fault: "an approval is sent twice, or two agents act on it",
			Agent: "one effect",
		},
		{
			Number: 72, Fault: "an approval is too old, its giver lost the role, or is who asked",
			Agent: "refused, and the trail says so",
		},
		{
			Number: 73, Fault: "a failover during a release",
			Agent: "unknown until it was read again; never sent and forgotten",
		},
		{
			Number: 74, Fault: "a release takes effect and its answer is lost",
			Agent: "the repeat finds the record that the script left, and the trail says released",
		},
		{
			Number: 75, Fault: "very many releases are asked for",
			Agent: "limited by the minute, and beyond that a second approval is needed",
		},
		{
			Number: 76, Fault: "the holder lives on after a forced release",
			Library: "its context ends within a second, by push",
			Agent:   "the release raises the fence: late writes are refused at once",
		},
	}
}
