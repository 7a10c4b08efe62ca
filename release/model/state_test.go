package model

// Identity is how surely a hold can be distinguished from the next.
type Identity int8

// The identities.
const (
	Strong  Identity = iota // the value is fresh in each acquisition
	Lineage                 // the value comes again, the expiry does not
	None                    // nothing tells them apart
)

// hold is which acquisition it is and how often it was renewed: what nobody but
// the model knows.
type hold struct{ inc, renewals int8 }

// Bounds of what happens in one run.
const (
	maxHolds    = 3
	maxRenewals = 1
	maxCrashes  = 1
	agents      = 2
)

// view is what can be read of a lock; value 0 means that there is none.
type view struct{ value, expiry int8 }

func (id Identity) see(held bool, h hold) view {
	if !held {
		return view{}
	}
	v := view{value: 1, expiry: 0}
	if id == Strong {
		v.value = 1 + h.inc
	}
	if id != None {
		v.expiry = 1 + h.inc*(maxRenewals+1) + h.renewals
	}
	return v
}

// Status is where the request stands.
type Status int8

// The states of a request.
const (
	Pending Status = iota
	Approved
	Executing
	Released
	Gone
	Changed
	Failed
	Unknown
)

func (s Status) final() bool { return s >= Released }

// String returns the state's name.
func (s Status) String() string {
	return [...]string{"pending", "approved", "executing", "released", "already_gone", "changed", "failed", "unknown"}[s]
}

// step is where an agent is.
type step int8

const (
	idle   step = iota
	look        // has the request, will read the lock again
	send        // the lock is as it was frozen
	wait        // the script is sent
	ask         // no answer came
	judge       // no record: will look at the lock
	finish      // knows the outcome, will write it down
)

// agent is one process of the agent.
type agent struct {
	at      step
	outcome Status // at finish
}

// script is a release under way to the server.
type script struct {
	sent   bool
	expect view
	agent  int8
}

// exec is the record that stands beside the lock.
type exec int8

const (
	noRecord exec = iota
	withdrawn
	recordReleased
	recordGone
	recordChanged
)

func (e exec) outcome() Status {
	switch e {
	case recordReleased:
		return Released
	case recordGone:
		return Gone
	default: // what is withdrawn is reported as an act that touched nothing
		return Changed
	}
}

// State is all of it. It is comparable.
type State struct {
	held bool
	hold hold

	status   Status
	evidence view
	frozen   hold // what the evidence is of
	version  int8 // of the evidence: its hash
	seen     int8 // version that the approver looked at; 0: none
	saw      hold // what that was of
	approved hold // what the approval was meant for

	agents  [agents]agent
	scripts [agents]script
	record  exec
	evicted bool
	crashes int8

	deletions int8
	wrong     bool   // a deletion of something else than was approved
	was       Status // the final state that was written first
}
