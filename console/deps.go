package console

import (
	"context"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/signin"
)

// Locks is what is known of the lock keys of all targets.
type Locks interface {
	// ListLocks returns a page of the locks of the last sweeps. It is quick with
	// 100,000 locks, and does not wait for a sweep. A filter that cannot be read is
	// locksteward.ErrInvalid.
	ListLocks(f LockFilter) (LockPage, error)
	// Lock reads one lock now. The error wraps locksteward.ErrNotFound when
	// there is no such target or lock.
	Lock(ctx context.Context, target string, db int, key string) (locksteward.Lock, error)
	// Explain says what each rule makes of a lock, in lang ("en" or "zh").
	Explain(l locksteward.Lock, lang string) []api.Verdict
}

// Findings is what the rules say now.
type Findings interface {
	// Findings returns the pending and firing findings of all targets in any
	// order; the slice is the caller's.
	Findings() []locksteward.Finding
}

// Targets is the health of the targets and the policy of the classes.
type Targets interface {
	// Targets returns all targets in the order of the configuration.
	Targets() []api.Target
	// Classes returns the classes in the order they match, the default last.
	Classes() []api.Class
}

// Requests reads release requests.
type Requests interface {
	// List returns requests, newest first.
	List(ctx context.Context, filter RequestFilter) ([]locksteward.Request, error)
	// Get returns one; an unknown id is locksteward.ErrNotFound.
	Get(ctx context.Context, id string) (locksteward.Request, error)
	// Bundle returns the requests that are decided on together, by the bundle's id
	// or that of one of them; an unknown id is locksteward.ErrNotFound.
	Bundle(ctx context.Context, id string) (Bundle, error)
	// ApprovalStatus says what still is to be decided on a request, by the policy as it
	// is now.
	ApprovalStatus(r locksteward.Request) ApprovalStatus
}

// Releases changes release requests. It judges the actor's roles, and writes
// what it refuses into the audit trail. Errors wrap the sentinels of package
// locksteward.
type Releases interface {
	Request(ctx context.Context, actor Actor, in ReleaseInput) (locksteward.Request, error)
	// Approve executes the release too when the approval was the last one
	// needed; the request that it returns tells the outcome.
	Approve(ctx context.Context, actor Actor, id string, word Decision) (locksteward.Request, error)
	Deny(ctx context.Context, actor Actor, id string, word Decision) (locksteward.Request, error)
	// Undo puts back what a request released; Lift removes the placeholder that it
	// left. Both return the request that they made, with its outcome.
	Undo(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error)
	Lift(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error)
	// DryRun says what Request would freeze and what its execution would do now;
	// Preview says it of a request that is open. Both touch nothing.
	DryRun(ctx context.Context, actor Actor, in ReleaseInput) (api.Preview, error)
	Preview(ctx context.Context, id string) (api.Preview, error)
	// BreakGlass requests, approves and executes at once, past the class's rules;
	// the word confirms what an approver would, its reason is not used.
	BreakGlass(ctx context.Context, actor Actor, in ReleaseInput, word Decision) (locksteward.Request, error)
	// RequestBundle asks for the locks of a dead host. Without keys they are those
	// of the target whose holder is on the host and dead, as the rules say.
	RequestBundle(ctx context.Context, actor Actor, in BundleInput) (Bundle, error)
	// ApproveBundle and DenyBundle decide on all requests of a bundle that are open.
	// A bundle with requests comes back with an error too where some were decided
	// on and others could not be.
	ApproveBundle(ctx context.Context, actor Actor, id string, word Decision) (Bundle, error)
	DenyBundle(ctx context.Context, actor Actor, id string, word Decision) (Bundle, error)
}

// ReleasePause pauses and resumes releases. It judges the actor's roles, and writes
// what it refuses into the audit trail.
type ReleasePause interface {
	ReleasePause() api.ReleasePause
	// PauseReleases pauses a scope ([api.PauseAll] or [api.PauseAutomatic]) until a time;
	// with the zero time until ResumeReleases.
	PauseReleases(ctx context.Context, actor Actor, scope string, until time.Time, reason string) error
	ResumeReleases(ctx context.Context, actor Actor, scope, reason string) error
}

// ReleaseAdvisor is what pages tell people before they ask for anything.
type ReleaseAdvisor interface {
	// Possible says what could be asked for a lock as it was seen last.
	Possible(l locksteward.Lock) Possible
	// WhyNotApprove says why the actor cannot approve a request as it stands, nil if
	// they can. It writes nothing.
	WhyNotApprove(actor Actor, r locksteward.Request) error
	// Resolved returns a finding that ended lately, by its fingerprint.
	Resolved(fingerprint string) (locksteward.Finding, bool)
	// Rules are the rules as they run, in the order of their names, their texts in
	// lang ("en" or "zh").
	Rules(lang string) []api.Rule
}

// Possible is what could be asked for a lock: each field is why not, "" if it
// could.
type Possible struct {
	Refusal       string // anything at all
	NoPlaceholder string // a take-over or a lock-delay
	NoUndo        string // an undo afterwards
}

// Graphs is who waits for whom.
type Graphs interface {
	// Graph is that of one target, or of all if it is "". An unknown target is
	// locksteward.ErrNotFound.
	Graph(target string) (api.Graph, error)
}

// Audit is the audit trail.
type Audit interface {
	// Entries returns the newest entries first, unless the query says otherwise.
	Entries(ctx context.Context, q AuditQuery) ([]locksteward.Entry, error)
	// Checkpoints returns the newest first, those before a place (0: all), at most
	// limit.
	Checkpoints(ctx context.Context, before int64, limit int) ([]api.Checkpoint, error)
	// VerifyAudit reads all of the trail. A broken trail is an answer, no error; two
	// at a time are locksteward.ErrConflict.
	VerifyAudit(ctx context.Context) (api.AuditVerified, error)
	AuditStatus(ctx context.Context) (api.AuditStatus, error)
	// ImportAudit takes in what was done without an agent, in the name of who
	// imports it: all lines or none. What is wrong with them is locksteward.ErrInvalid
	// and names the lines.
	ImportAudit(ctx context.Context, who string, in api.AuditImport) (api.AuditImported, error)
}

// AuditQuery selects audit entries; zero fields select all.
type AuditQuery struct {
	// Search is text in actor, action, key, reason or subject.
	Search                         string
	Actor, Action, Target, Subject string
	// Key is the exact bytes of a lock's key.
	Key string
	// Since and Until bound the time of an entry; Until is not included.
	Since, Until time.Time
	// Before and After bound its number, neither included; 0 is no bound.
	Before, After int64
	Ascending     bool // the oldest first
	Limit         int  // always positive
}

// LockHistory is what happened to locks before now.
type LockHistory interface {
	// LockEvents returns what happened to one lock, newest first, at most limit.
	LockEvents(ctx context.Context, target string, db int, key string, limit int) ([]api.LockEvent, error)
	// Fired returns the findings on anything that fired since a time, newest first, at most limit: their time, rule and severity.
	// It may be some seconds old.
	Fired(ctx context.Context, since time.Time, limit int) ([]api.LockEvent, error)
}

// Reloader reads the configuration again.
type Reloader interface {
	// Reload swaps the configuration as a whole or changes nothing. Its error is
	// shown to the admin who asked, whose name is by.
	Reload(ctx context.Context, by string) error
}

// Pauser keeps the agent from asking anything of targets, and lets it again.
type Pauser interface {
	// Pause holds one target, or all of them if target is "". It returns the
	// names of those held.
	Pause(ctx context.Context, target string, p locksteward.Pause) ([]string, error)
	// Resume ends the pause of one target, or of all, and returns the names of
	// those that were paused.
	Resume(ctx context.Context, target, by string) ([]string, error)
}

// Reports is how locks were held.
type Reports interface {
	// Report covers one target, or all if it is "", and one class, or all, since a
	// time. An unknown target or class is locksteward.ErrNotFound.
	Report(ctx context.Context, target, class string, since time.Time) (api.Report, error)
}

// Actor is who asks, as the console authenticated them.
type Actor struct {
	Name  string
	Roles []string // viewer, requester, approver, admin, break-glass
	Teams []string // what classes[].approvers may name as team:NAME
}

// ReleaseInput is what a person wants to be released.
type ReleaseInput struct {
	Target string
	DB     int
	Key    string // exact bytes
	Reason string
	// HolderAlive, TakeOver and LockDelay are what api.CreateRequest says of them.
	HolderAlive bool
	TakeOver    time.Duration
	LockDelay   *time.Duration
}

// BundleInput is what a person wants to be released of a dead host.
type BundleInput struct {
	Target string
	Host   string
	Keys   []string // exact bytes; nil: those that look dead
	Reason string
}

// Bundle is requests that are decided on together.
type Bundle struct {
	ID       string
	Hash     string // what a decision on all of them signs
	Requests []locksteward.Request
	LeftOut  []api.LeftOut
}

// ApprovalStatus is what still is to be decided on a request.
type ApprovalStatus struct {
	// ApprovalsNeeded and DenialsNeeded are how many people must say so; 0 if the
	// class is not configured any more.
	ApprovalsNeeded int
	DenialsNeeded   int
	// Warnings are what a person should know before they approve.
	Warnings []string
}

// Decision is one person's decision.
type Decision struct {
	Reason             string
	EvidenceHash       string
	ConfirmNoIdentity  bool
	ConfirmHolderAlive bool
}

// RequestFilter selects requests; zero fields select all.
type RequestFilter struct {
	States    []locksteward.RequestState
	Target    string
	Class     string
	Requester string  // any case
	Key       *string // exact bytes
	Since     time.Time
	// After goes on behind a request: the CreatedAt and ID of the last one seen.
	After *RequestPosition
	Limit int // always positive
}

// RequestPosition is a place in the list of requests.
type RequestPosition struct {
	At time.Time
	ID string
}

// LockFilter selects and orders locks; zero fields select all.
type LockFilter struct {
	Target, Class, Library string
	// State is "firing", "pending" or "clear", by the findings on the lock, or
	// "no-ttl".
	State string
	// Holder is part of the app, host, session or instance of the holder, in any
	// case.
	Holder string
	// Match is a pattern as classes have it, Text part of the key in any case.
	Match, Text string
	// Sum is the [KeySum] of the key, of keys longer than [LongKey] alone.
	Sum string
	// Sort is "" or "key"; "age" with the longest held first; or "ttl" with the next
	// to expire first and those that never do last.
	Sort string
	// After goes on behind a lock: see [LockPage].
	After *LockPosition
	Limit int // always positive
}

// LockPosition is a place in a list of locks. It holds while locks come and go
// and their ages grow: Value is when the hold began or when it expires.
type LockPosition struct {
	Value  int64
	Target string
	DB     int
	Key    string
}

// LockPage is part of a list of locks.
type LockPage struct {
	Rows []LockRow
	// Total counts what the filter selects, on all pages.
	Total int
	// Next is where the next page begins; nil on the last one.
	Next *LockPosition
}

// LockRow is a lock with what the rules say of it.
type LockRow struct {
	locksteward.Lock
	// Rules fire or are pending on it, sorted, each once.
	Rules []string
	// State is firing if one of them fires, else pending; "" without any.
	State locksteward.Status
	// Now is the time by the clock of the lock's server; zero if it is not known.
	Now time.Time
}

// Deps is what the console shows and changes; all are required.
type Deps struct {
	Locks        Locks
	Findings     Findings
	Targets      Targets
	Requests     Requests
	Releases     Releases
	Audit        Audit
	Reloader     Reloader
	Pauser       Pauser
	Reports      Reports
	History      LockHistory
	ReleasePause ReleasePause
	Graphs       Graphs
	Advisor      ReleaseAdvisor
	// Notifications is the outbox of the agent.
	Notifications Notifications
	// Silences mute notifications.
	Silences Silences
	// Sessions keeps who is signed in.
	Sessions signin.Store
}

func (d Deps) check() error {
	for name, missing := range map[string]bool{
		"Locks": d.Locks == nil, "Findings": d.Findings == nil, "Targets": d.Targets == nil, "Requests": d.Requests == nil,
		"Releases": d.Releases == nil, "Audit": d.Audit == nil, "Reloader": d.Reloader == nil,
		"Pauser": d.Pauser == nil, "Reports": d.Reports == nil, "History": d.History == nil,
		"ReleasePause": d.ReleasePause == nil, "Graphs": d.Graphs == nil, "Advisor": d.Advisor == nil, "Sessions": d.Sessions == nil,
		"Notifications": d.Notifications == nil, "Silences": d.Silences == nil,
	} {
		if missing {
			return errors.New("console: dependency " + name + " is missing")
		}
	}
	return nil
}
