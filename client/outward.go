package client

import (
	"context"
	"strconv"

	"sbx/engine"
)

// Messages are those of the chat about a sandbox.
func (c *Client) Messages(ctx context.Context, q engine.MessageQuery) ([]engine.Message, error) {
	v := given()
	if q.After != 0 {
		v.Set("after", strconv.Itoa(q.After))
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return answer[[]engine.Message](ctx, c, of(q.Sandbox)+"/chat", v)
}

// Keys are the virtual keys of a sandbox, or of the fleet.
func (c *Client) Keys(ctx context.Context, id engine.SandboxID) ([]engine.Key, error) {
	return answer[[]engine.Key](ctx, c, "/v1/keys", given("sandbox", string(id)))
}

// Notices are the newest notices.
func (c *Client) Notices(ctx context.Context) ([]engine.Notice, error) {
	return answer[[]engine.Notice](ctx, c, "/v1/notices", nil)
}
