package apiclient

import (
	"context"
	"strconv"
	"time"

	"github.com/locksteward/locksteward/api"
)

// AuditQuery selects audit entries; zero fields select all.
type AuditQuery struct {
	Search                         string
	Actor, Action, Target, Subject string
	Key                            string // exact bytes
	// Since and Until are RFC 3339, or how long ago.
	Since, Until string
	Before       int64 // the next page of the newest first
	After        int64 // the next page of the oldest first
	Ascending    bool  // the oldest first
	Limit        int   // 0: the agent's default
}

// AuditEntries lists entries of the audit trail, newest first unless the query says
// otherwise.
func (c *Client) AuditEntries(ctx context.Context, q AuditQuery) (api.EntryList, error) {
	key := api.NewKey(q.Key)
	if key.KeyB64 != "" {
		key.Key = ""
	}
	after := ""
	if q.Ascending {
		after = strconv.FormatInt(q.After, 10)
	}
	return get[api.EntryList](ctx, c, "/api/v1/audit", values("q", q.Search, "actor", q.Actor, "action", q.Action, "target", q.Target,
		"subject", q.Subject, "key", key.Key, "key_b64", key.KeyB64, "since", q.Since, "until", q.Until, "before", place(q.Before),
		"after", after, "limit", number(q.Limit)))
}

// AuditCheckpoints lists checkpoints, newest first, those before a place (0: all).
func (c *Client) AuditCheckpoints(ctx context.Context, before int64, limit int) (api.CheckpointList, error) {
	return get[api.CheckpointList](ctx, c, "/api/v1/audit/checkpoints", values("before", place(before), "limit", number(limit)))
}

// AuditVerify has the agent read all of its trail.
func (c *Client) AuditVerify(ctx context.Context) (api.AuditVerified, error) {
	return get[api.AuditVerified](ctx, c, "/api/v1/audit/verify", nil)
}

// AuditStatus returns the state of the trail.
func (c *Client) AuditStatus(ctx context.Context) (api.AuditStatus, error) {
	return get[api.AuditStatus](ctx, c, "/api/v1/audit/status", nil)
}

// AuditImport takes lines of a file of `locksteward unlock` into the trail.
func (c *Client) AuditImport(ctx context.Context, in api.AuditImport) (api.AuditImported, error) {
	return post[api.AuditImported](ctx, c, "/api/v1/audit/import", in)
}

func place(seq int64) string {
	if seq == 0 {
		return ""
	}
	return strconv.FormatInt(seq, 10)
}

// AuditTime writes a time for [AuditQuery].
func AuditTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
