package faults

func durabilityRows() []Row {
	return []Row{
		{
			Number: 77, Fault: "SIGKILL at any point between a verdict and its acknowledged message, 1,000 times",
			Agent: "no message is lost, and one sent twice has the same id",
		},
		{
			Number: 78, Fault: "the disk is full, fails or takes no writes",
			Agent: "says so, keeps its metrics up, and never runs in a loop of panics; after a failed fsync nothing is written, and no agent opens the file, before it was repaired or restored",
		},
		{
			Number: 79, Fault: "the store is torn or has flipped bits",
			Agent: "detected and reported, also by a metric; nothing damaged is read as if it were whole; a damaged file is refused at a start",
		},
		{
			Number: 80, Fault: "a receiver fails, throttles, redirects, drips, or answers with a gigabyte",
			Agent: "backs off, follows no redirect, reads a bounded part, and delays no other receiver",
		},
		{
			Number: 81, Fault: "a configuration that is wrong is loaded",
			Agent: "the old one stays, and a metric says so",
		},
		{
			Number: 82, Fault: "two agents with one configuration, cut off from each other",
			Agent: "one acts; both may tell, under the one id by which sinks take both for one (the fingerprint)",
		},
		{
			Number: 83, Fault: "SIGTERM with ten thousand messages waiting",
			Agent: "sends for a bounded time, keeps the rest, ends with 0",
		},
		{
			Number: 84, Fault: "ten times as many alerts as usual",
			Agent: "grouped and capped, within its memory; what is left out is counted and never critical",
		},
	}
}
