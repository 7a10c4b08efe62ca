package apiclient

import (
	"context"
	"net/url"

	"github.com/locksteward/locksteward/api"
)

// Silences lists silences, newest first; all includes those that are over
// too.
func (c *Client) Silences(ctx context.Context, all bool) (api.SilenceList, error) {
	wanted := ""
	if all {
		wanted = "true"
	}
	return get[api.SilenceList](ctx, c, "/api/v1/silences", values("all", wanted))
}

// AddSilence silences findings, or accepts one.
func (c *Client) AddSilence(ctx context.Context, in api.AddSilence) (api.Silence, error) {
	return post[api.Silence](ctx, c, "/api/v1/silences", in)
}

// ExpireSilence ends a silence now.
func (c *Client) ExpireSilence(ctx context.Context, id string) (api.Silence, error) {
	return post[api.Silence](ctx, c, "/api/v1/silences/"+url.PathEscape(id)+"/expire", struct{}{})
}
