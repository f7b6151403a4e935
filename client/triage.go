package client

import (
	"context"
	"net/url"
	"strconv"

	"sbx/engine"
)

// Incidents are those that q selects, oldest first.
func (c *Client) Incidents(ctx context.Context, q engine.IncidentQuery) ([]engine.Incident, error) {
	if q.ID != "" {
		i, err := answer[engine.Incident](ctx, c, "/v1/incidents/"+segment(q.ID), nil)
		if err != nil {
			return nil, err
		}
		return []engine.Incident{i}, nil
	}
	return answer[[]engine.Incident](ctx, c, "/v1/incidents", incidentValues(q))
}

func incidentValues(q engine.IncidentQuery) url.Values {
	v := given("sandbox", string(q.Sandbox), "since", moment(q.Since))
	if q.Open {
		v.Set("open", "true")
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// Budgets are the bounds on models' work, and what of them was used today.
func (c *Client) Budgets(ctx context.Context) (engine.Budgets, error) {
	return answer[engine.Budgets](ctx, c, "/v1/budgets", nil)
}
