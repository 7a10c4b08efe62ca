package faults

// serverGaps are those of the rows 1 to 42.
func serverGaps() []Gap {
	return nil
}

// agentGaps are those of the rows 43 to 84.
func agentGaps() []Gap {
	return nil
}
