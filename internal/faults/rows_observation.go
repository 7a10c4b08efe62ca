package faults

func observationRows() []Row {
	return []Row{
		{
			Number: 60, Fault: "pushes of the server are lost",
			Agent: "the time counts as blind, everything is looked at again, and no change is missed outside it",
		},
		{
			Number: 61, Fault: "messages come before the answer to the subscription",
			Agent: "taken in any order",
		},
		{
			Number: 62, Fault: "SCAN returns a key twice",
			Agent: "counted once",
		},
		{
			Number: 63, Fault: "keys come and go during a sweep",
			Agent: "no anomaly; a key that is there throughout is seen",
		},
		{
			Number: 64, Fault: "reading changes what is read: SCAN deletes what has expired, GET touches the idle time",
			Agent: "documented; values are read only where something changed",
		},
		{
			Number: 65, Fault: "SCAN returns empty pages before the end",
			Agent: "goes on until the cursor is 0",
		},
	}
}
