package doctor

import "github.com/locksteward/locksteward/source"

// Short names of what [source] has.
type (
	Status = source.Status
	Check  = source.Check
)

// Statuses, from good to bad.
const (
	OK   = source.StatusOK
	Warn = source.StatusWarn
	Fail = source.StatusFail
)

// Report is what is known of one target.
type Report struct {
	Target string  `json:"target"`
	URL    string  `json:"url"` // without user and password
	Status Status  `json:"status"`
	Checks []Check `json:"checks"`
	// Forecast is null where the target could not be looked at.
	Forecast *Forecast `json:"forecast"`
}

// Forecast is what watching the target would cost, summed over its masters where
// nothing else is said.
type Forecast struct {
	// Keys are counted by the servers, Locks and Read estimated from the names of
	// a sample: keys that are locks by their name, and keys that are looked into.
	Keys  int64 `json:"keys"`
	Locks int64 `json:"locks"`
	Read  int64 `json:"keys_read"`
	// Sampled is how many keys the sample has.
	Sampled int64 `json:"keys_sampled"`
	// ConnectionsPerMaster is the most that one agent has open to a master.
	ConnectionsPerMaster int `json:"connections_per_master"`
	// ServerMs is the server time that one sweep takes, SweepMs how long it takes while nobody else uses the server,
	// SweepBusyMs while it is in full use, ServerShare what sweeps on the schedule come to (null where the schedule has
	// no fixed interval).
	ServerMs    float64  `json:"server_ms_per_sweep"`
	SweepMs     float64  `json:"sweep_ms"`
	SweepBusyMs float64  `json:"sweep_busy_ms"`
	ServerShare *float64 `json:"server_share"`
	// StoreBytesPerDay is by how much the agent's store grows at most, null if no
	// lock was seen. StoreAssumption says what that rests on.
	StoreBytesPerDay *int64 `json:"store_bytes_per_day"`
	StoreAssumption  string `json:"store_assumption"`
}

// Worse returns the worse of two.
func Worse(a, b Status) Status {
	rank := map[Status]int{OK: 0, Warn: 1, Fail: 2}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// add notes a check. Equal results of several nodes are merged.
func (r *Report) add(name string, status Status, node, found, todo string) {
	r.Status = Worse(r.Status, status)
	for i := range r.Checks {
		c := &r.Checks[i]
		if node != "" && c.Name == name && c.Status == status && c.Found == found && c.Todo == todo {
			c.Nodes = append(c.Nodes, node)
			return
		}
	}
	c := Check{Name: name, Status: status, Nodes: []string{}, Found: found, Todo: todo}
	if node != "" {
		c.Nodes = append(c.Nodes, node)
	}
	r.Checks = append(r.Checks, c)
}
