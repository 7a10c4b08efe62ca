package source

// Status is what a check of `locksteward doctor` came to.
type Status string

// Statuses, from good to bad.
const (
	StatusOK   Status = "ok"
	StatusWarn Status = "warn" // works, with less, or not for long
	StatusFail Status = "fail" // does not work until somebody acts
)

// Check is one thing that `locksteward doctor` examined.
type Check struct {
	// Name is a word of a fixed list for each store (docs/doctor.md).
	Name   string `json:"check"`
	Status Status `json:"status"`
	// Nodes are the servers that it is true of; empty for the target as a whole.
	Nodes []string `json:"nodes"`
	// Found is what is the case, Todo what to do, "" for nothing.
	Found string `json:"found"`
	Todo  string `json:"todo"`
}

// CheckOK returns a check of a target as a whole that found it as it should be.
func CheckOK(name, found string) Check {
	return Check{Name: name, Status: StatusOK, Nodes: []string{}, Found: found}
}

// CheckFailed returns a check of a target as a whole that found something to do.
func CheckFailed(name, found, todo string) Check {
	return Check{Name: name, Status: StatusFail, Nodes: []string{}, Found: found, Todo: todo}
}
