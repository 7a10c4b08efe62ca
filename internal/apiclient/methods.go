package apiclient

import (
	"context"
	"net/url"
	"strconv"

	"github.com/locksteward/locksteward/api"
)

// LocksQuery selects locks; zero fields select all.
type LocksQuery struct {
	Target, Class, Dialect string
	State                  string // firing, pending, clear or no-ttl
	Sort                   string // key or age
	Limit                  int    // 0: the agent's default
}

// FindingsQuery selects findings; zero fields select all.
type FindingsQuery struct {
	Target, Class, Rule string
	Severity            string // critical, warning or info
	Status              string // firing or pending
	Lang                string // en or zh
	Limit               int    // 0: the agent's default
}

// RequestsQuery selects requests; zero fields select all.
type RequestsQuery struct {
	State  string // a state, or open
	Target string
	Limit  int // 0: the agent's default
}

// Locks lists what the last sweeps saw.
func (c *Client) Locks(ctx context.Context, q LocksQuery) (api.LockList, error) {
	return get[api.LockList](ctx, c, "/api/v1/locks", values("target", q.Target, "class", q.Class, "dialect", q.Dialect,
		"state", q.State, "sort", q.Sort, "limit", number(q.Limit)))
}

// Lock reads one lock now, with what the rules say of it. key is its exact
// bytes; a nil db is the target's own.
func (c *Client) Lock(ctx context.Context, target string, db *int, key, lang string) (api.LockDetail, error) {
	k := api.NewKey(key)
	q := values("target", target, "lang", lang)
	if k.KeyB64 != "" {
		q.Set("key_b64", k.KeyB64)
	} else {
		q.Set("key", k.Key)
	}
	if db != nil {
		q.Set("db", strconv.Itoa(*db))
	}
	return get[api.LockDetail](ctx, c, "/api/v1/locks/one", q)
}

// Findings lists what the rules say, the worst first.
func (c *Client) Findings(ctx context.Context, q FindingsQuery) (api.FindingList, error) {
	return get[api.FindingList](ctx, c, "/api/v1/findings", values("target", q.Target, "class", q.Class, "rule", q.Rule,
		"severity", q.Severity, "status", q.Status, "lang", q.Lang, "limit", number(q.Limit)))
}

// Targets lists the targets with their health.
func (c *Client) Targets(ctx context.Context) (api.TargetList, error) {
	return get[api.TargetList](ctx, c, "/api/v1/targets", nil)
}

// Classes lists the classes in the order they match.
func (c *Client) Classes(ctx context.Context) (api.ClassList, error) {
	return get[api.ClassList](ctx, c, "/api/v1/classes", nil)
}

// Report says how locks were held since a duration ago, such as "24h"; empty
// parameters are the agent's defaults: all targets, all classes, a day.
func (c *Client) Report(ctx context.Context, target, class, since string) (api.Report, error) {
	return get[api.Report](ctx, c, "/api/v1/report", values("target", target, "class", class, "since", since))
}

// Requests lists release requests, newest first.
func (c *Client) Requests(ctx context.Context, q RequestsQuery) (api.RequestList, error) {
	return get[api.RequestList](ctx, c, "/api/v1/requests", values("state", q.State, "target", q.Target, "limit", number(q.Limit)))
}

// Request returns one request.
func (c *Client) Request(ctx context.Context, id string) (api.Request, error) {
	return get[api.Request](ctx, c, "/api/v1/requests/"+url.PathEscape(id), nil)
}

// CreateRequest asks for the release of a lock.
func (c *Client) CreateRequest(ctx context.Context, in api.CreateRequest) (api.Request, error) {
	return post[api.Request](ctx, c, "/api/v1/requests", in)
}

// Approve approves a request, which executes it if no more approvals are
// needed; the answer tells the outcome.
func (c *Client) Approve(ctx context.Context, id string, in api.Decide) (api.Request, error) {
	return post[api.Request](ctx, c, "/api/v1/requests/"+url.PathEscape(id)+"/approve", in)
}

// Deny ends a request.
func (c *Client) Deny(ctx context.Context, id string, in api.Decide) (api.Request, error) {
	return post[api.Request](ctx, c, "/api/v1/requests/"+url.PathEscape(id)+"/deny", in)
}

// Undo puts back what a request released; the answer is the request that it made.
func (c *Client) Undo(ctx context.Context, id string, in api.Follow) (api.Request, error) {
	return post[api.Request](ctx, c, "/api/v1/requests/"+url.PathEscape(id)+"/undo", in)
}

// Lift ends what stands in a lock's place by a request.
func (c *Client) Lift(ctx context.Context, id string, in api.Follow) (api.Request, error) {
	return post[api.Request](ctx, c, "/api/v1/requests/"+url.PathEscape(id)+"/lift", in)
}

// DryRun says what CreateRequest would ask for and what its execution would do
// now.
func (c *Client) DryRun(ctx context.Context, in api.CreateRequest) (api.Preview, error) {
	return post[api.Preview](ctx, c, "/api/v1/requests/preview", in)
}

// Preview says what the execution of an open request would do now.
func (c *Client) Preview(ctx context.Context, id string) (api.Preview, error) {
	return get[api.Preview](ctx, c, "/api/v1/requests/"+url.PathEscape(id)+"/preview", nil)
}

// Audit lists the newest entries of the audit trail; limit 0 is the agent's
// default.
func (c *Client) Audit(ctx context.Context, limit int) (api.EntryList, error) {
	return get[api.EntryList](ctx, c, "/api/v1/audit", values("limit", number(limit)))
}

// Reload makes the agent read its configuration again.
func (c *Client) Reload(ctx context.Context) error {
	_, err := post[api.Reloaded](ctx, c, "/-/reload", struct{}{})
	return err
}

// values builds a query of names and values, leaving empty values out.
func values(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
