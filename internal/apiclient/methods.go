package apiclient

import (
	"context"
	"maps"
	"net/url"
	"strconv"

	"github.com/locksteward/locksteward/api"
)

// LocksQuery selects locks; zero fields select all.
type LocksQuery struct {
	Target, Class, Library string
	State                  string // firing, pending, clear or no-ttl
	Holder                 string // part of the app, host, session or instance
	Match                  string // a pattern of keys, as classes have it
	Text                   string // part of the key
	Sort                   string // key, age or ttl
	Limit                  int    // of one page; 0: the agent's default
	Cursor                 string // api.LockList.Next of the page before
}

// FindingsQuery selects findings; zero fields select all.
type FindingsQuery struct {
	Target, Class, Rule string
	Severity            string // critical, warning or info
	Status              string // firing or pending
	Text                string // part of the key
	Lang                string // en or zh
	Limit               int    // of one page; 0: the agent's default
	Cursor              string
}

// RequestsQuery selects requests; zero fields select all.
type RequestsQuery struct {
	State     string // a state, or open
	Target    string
	Class     string
	Requester string
	Key       *string // exact bytes
	Since     string  // how long ago, or a time in RFC 3339
	Limit     int     // of one page; 0: the agent's default
	Cursor    string
}

// Locks lists what the last sweeps saw.
func (c *Client) Locks(ctx context.Context, q LocksQuery) (api.LockList, error) {
	return get[api.LockList](ctx, c, "/api/v1/locks", values("target", q.Target, "class", q.Class, "library", q.Library,
		"state", q.State, "holder", q.Holder, "match", q.Match, "q", q.Text, "sort", q.Sort, "limit", number(q.Limit), "cursor", q.Cursor))
}

// LockEvents lists what happened to one lock, the newest first; limit 0 is the
// agent's default.
func (c *Client) LockEvents(ctx context.Context, target string, db *int, key string, limit int) (api.LockEventList, error) {
	q := lockValues(target, db, key)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[api.LockEventList](ctx, c, "/api/v1/locks/events", q)
}

// lockValues names one lock.
func lockValues(target string, db *int, key string) url.Values {
	k, q := api.NewKey(key), values("target", target)
	if k.KeyB64 != "" {
		q.Set("key_b64", k.KeyB64)
	} else {
		q.Set("key", k.Key)
	}
	if db != nil {
		q.Set("db", strconv.Itoa(*db))
	}
	return q
}

// Graph is who waits for whom on a target; "" is all of them.
func (c *Client) Graph(ctx context.Context, target string) (api.Graph, error) {
	return get[api.Graph](ctx, c, "/api/v1/graph", values("target", target))
}

// Lock reads one lock now, with what the rules say of it. key is its exact
// bytes; a nil db is the target's own.
func (c *Client) Lock(ctx context.Context, target string, db *int, key, lang string) (api.LockDetail, error) {
	q := lockValues(target, db, key)
	if lang != "" {
		q.Set("lang", lang)
	}
	return get[api.LockDetail](ctx, c, "/api/v1/locks/one", q)
}

// Findings lists what the rules say, the worst first.
func (c *Client) Findings(ctx context.Context, q FindingsQuery) (api.FindingList, error) {
	return get[api.FindingList](ctx, c, "/api/v1/findings", values("target", q.Target, "class", q.Class, "rule", q.Rule,
		"severity", q.Severity, "status", q.Status, "q", q.Text, "lang", q.Lang, "limit", number(q.Limit), "cursor", q.Cursor))
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
	v := values("state", q.State, "target", q.Target, "class", q.Class, "requester", q.Requester, "since", q.Since,
		"limit", number(q.Limit), "cursor", q.Cursor)
	if q.Key != nil {
		maps.Copy(v, lockValues("", nil, *q.Key))
	}
	return get[api.RequestList](ctx, c, "/api/v1/requests", v)
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

// Lift ends the placeholder that a request set.
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

// BreakGlass asks for a release, approves and executes it at once.
func (c *Client) BreakGlass(ctx context.Context, in api.BreakGlass) (api.Request, error) {
	return post[api.Request](ctx, c, "/api/v1/requests/break-glass", in)
}

// CreateBundle asks for the release of the locks of a dead host.
func (c *Client) CreateBundle(ctx context.Context, in api.CreateBundle) (api.Bundle, error) {
	return post[api.Bundle](ctx, c, "/api/v1/bundles", in)
}

// Bundle returns one bundle.
func (c *Client) Bundle(ctx context.Context, id string) (api.Bundle, error) {
	return get[api.Bundle](ctx, c, "/api/v1/bundles/"+url.PathEscape(id), nil)
}

// ApproveBundle approves the requests of a bundle that are open; the answer tells
// their outcomes.
func (c *Client) ApproveBundle(ctx context.Context, id string, in api.Decide) (api.Bundle, error) {
	return post[api.Bundle](ctx, c, "/api/v1/bundles/"+url.PathEscape(id)+"/approve", in)
}

// DenyBundle denies the requests of a bundle that are open.
func (c *Client) DenyBundle(ctx context.Context, id string, in api.Decide) (api.Bundle, error) {
	return post[api.Bundle](ctx, c, "/api/v1/bundles/"+url.PathEscape(id)+"/deny", in)
}

// ReleasePause returns what pauses releases now.
func (c *Client) ReleasePause(ctx context.Context) (api.ReleasePause, error) {
	return get[api.ReleasePause](ctx, c, "/api/v1/release/pause", nil)
}

// PauseReleases pauses releases of one scope.
func (c *Client) PauseReleases(ctx context.Context, in api.PauseReleases) (api.ReleasePause, error) {
	return post[api.ReleasePause](ctx, c, "/api/v1/release/pause", in)
}

// ResumeReleases ends the pause of one scope.
func (c *Client) ResumeReleases(ctx context.Context, in api.ResumeReleases) (api.ReleasePause, error) {
	return post[api.ReleasePause](ctx, c, "/api/v1/release/resume", in)
}

// Audit lists the newest entries of the audit trail; limit 0 is the agent's
// default.
func (c *Client) Audit(ctx context.Context, limit int) (api.EntryList, error) {
	return get[api.EntryList](ctx, c, "/api/v1/audit", values("limit", number(limit)))
}

// NotificationQuery selects notifications; zero fields select all.
type NotificationQuery struct {
	State, Receiver string
	Before          int64
	Limit           int
}

// Notifications lists notifications, newest first, and the receivers.
func (c *Client) Notifications(ctx context.Context, q NotificationQuery) (api.NotificationList, error) {
	before := ""
	if q.Before > 0 {
		before = strconv.FormatInt(q.Before, 10)
	}
	return get[api.NotificationList](ctx, c, "/api/v1/notifications", values("state", q.State, "receiver", q.Receiver, "before", before, "limit", number(q.Limit)))
}

// RetryNotification makes a dead letter due again.
func (c *Client) RetryNotification(ctx context.Context, id string) (api.Retried, error) {
	return post[api.Retried](ctx, c, "/api/v1/notifications/"+url.PathEscape(id)+"/retry", struct{}{})
}

// RetryReceiver makes all dead letters of a receiver due again.
func (c *Client) RetryReceiver(ctx context.Context, name string) (api.Retried, error) {
	return post[api.Retried](ctx, c, "/api/v1/receivers/"+url.PathEscape(name)+"/retry", struct{}{})
}

// TestReceiver sends a test to a receiver.
func (c *Client) TestReceiver(ctx context.Context, name string) (api.ReceiverTest, error) {
	return post[api.ReceiverTest](ctx, c, "/api/v1/receivers/"+url.PathEscape(name)+"/test", struct{}{})
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
