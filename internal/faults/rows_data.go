package faults

func dataRows() []Row {
	return []Row{
		{
			Number: 51, Fault: "a key of another type has the name of a lock",
			Library: "a typed error, not repeated without end",
			Agent:   "says that it is no lock it can read, and reads no value of it as one",
		},
		{
			Number: 52, Fault: "huge values: a string of 512 MB, metadata of 64 MB",
			Library: "refuses metadata that is too large",
			Agent:   "looks at the size first and reads a bounded part; keeps at most 1 KB of a key",
		},
		{
			Number: 53, Fault: "hostile names: binary, empty, line ends, quotes, NUL, broken UTF-8, 64 KB, braces",
			Library: "the name is exact, byte by byte",
			Agent:   "exact from the sweep over API, metrics and messages to the release",
		},
		{
			Number: 54, Fault: "values of other libraries, and broken ones",
			Agent: "recognised or opaque, never a panic",
		},
		{
			Number: 55, Fault: "patterns with many stars, and with signs of patterns in what is meant literally",
			Agent: "refused when the configuration is read, but for a literal prefix and one star",
		},
		{
			Number: 56, Fault: "a million keys, a hundred thousand locks",
			Agent: "memory, time and the number of series stay in bounds",
		},
		{
			Number: 57, Fault: "fifty thousand writes a second on a few locks",
			Agent: "many changes of a key become one look; nothing but what lay between is lost",
		},
		{
			Number: 58, Fault: "two databases have the same key",
			Agent: "a change is read again in its own database before anything is said",
		},
		{
			Number: 59, Fault: "two locks of one name in different databases or clusters",
			Agent: "two locks: the identity is target, database and name",
		},
	}
}
