package claude

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"sbx/engine"
	"sbx/engine/agent"
)

// params writes a conversation in the API's form. The order tools, system,
// messages is that of the prompt cache: marks stand at the end of each, so that
// a turn pays only for what the last one added.
func (m *Model) params(t agent.Transcript, tools []agent.Tool) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: m.config.Model, MaxTokens: int64(m.config.MaxTokens)}
	for _, tool := range tools {
		p.Tools = append(p.Tools, toolParam(tool))
	}
	if s := valid(t.System); s != "" {
		p.System = []anthropic.TextBlockParam{{Text: s}}
	}
	messages, err := messageParams(t.Messages)
	if err != nil {
		return p, err
	}
	p.Messages = messages
	if !m.config.NoCache {
		mark(&p)
	}
	return p, nil
}

// mark sets the cache's marks; the API takes four at most.
func mark(p *anthropic.MessageNewParams) {
	mark := anthropic.NewCacheControlEphemeralParam()
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = mark
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = mark
	}
	for i := len(p.Messages) - 1; i >= 0; i-- {
		if p.Messages[i].Role != anthropic.MessageParamRoleUser {
			continue
		}
		if b := p.Messages[i].Content; len(b) > 0 {
			if c := b[len(b)-1].GetCacheControl(); c != nil {
				*c = mark
			}
		}
		return
	}
}

func toolParam(t agent.Tool) anthropic.ToolUnionParam {
	return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name:        t.Name(),
		Description: anthropic.String(valid(t.Description())),
		InputSchema: param.Override[anthropic.ToolInputSchemaParam](t.Schema()),
	}}
}

// messageParams leaves out what the API refuses, and answers calls that have
// no result: one such mistake would make every request of the conversation
// fail.
func messageParams(messages []agent.Message) ([]anthropic.MessageParam, error) {
	var out []anthropic.MessageParam
	var open []agent.Call // of the assistant's message before
	for i, msg := range messages {
		switch msg.Role {
		case agent.Assistant:
			if len(open) > 0 {
				out = append(out, anthropic.NewUserMessage(userBlocks(agent.Message{}, open)...))
			}
			p, ok := assistantParam(msg)
			if ok {
				out = append(out, p)
			}
			open = msg.Calls
		case agent.User:
			if blocks := userBlocks(msg, open); len(blocks) > 0 {
				out = append(out, anthropic.NewUserMessage(blocks...))
			}
			open = nil
		default:
			return nil, engine.Errorf(engine.Invalid, "message %d of the conversation is of nobody: role %q", i, msg.Role)
		}
	}
	if len(open) > 0 {
		out = append(out, anthropic.NewUserMessage(userBlocks(agent.Message{}, open)...))
	}
	if len(out) == 0 || out[0].Role != anthropic.MessageParamRoleUser {
		return nil, engine.Errorf(engine.Invalid, "the conversation doesn't begin with a message to the model")
	}
	return out, nil
}

// assistantParam is the model's turn as the provider gave it, or put together
// anew.
func assistantParam(msg agent.Message) (anthropic.MessageParam, bool) {
	if len(msg.Raw) > 0 {
		raw := fmt.Appendf(nil, `{"role":"assistant","content":%s}`, msg.Raw)
		if json.Valid(raw) {
			p := anthropic.MessageParam{Role: anthropic.MessageParamRoleAssistant}
			param.SetJSON(raw, &p)
			return p, true
		}
	}
	var blocks []anthropic.ContentBlockParamUnion
	if s := valid(msg.Text); s != "" {
		blocks = append(blocks, anthropic.NewTextBlock(s))
	}
	for _, c := range msg.Calls {
		input := c.Input
		if !json.Valid(input) {
			input = json.RawMessage("{}")
		}
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, input, c.Name))
	}
	return anthropic.NewAssistantMessage(blocks...), len(blocks) > 0
}

// userBlocks are the results, which must come first and be one for each call of
// the turn before, and then words.
func userBlocks(msg agent.Message, open []agent.Call) []anthropic.ContentBlockParamUnion {
	results := make(map[string]agent.Result, len(msg.Results))
	for _, r := range msg.Results {
		results[r.ID] = r
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, c := range open {
		r, ok := results[c.ID]
		if !ok {
			r = agent.Result{ID: c.ID, Text: "no result: the call was interrupted", Error: true}
		}
		text := valid(r.Text)
		if text == "" {
			text = "(no output)"
		}
		blocks = append(blocks, anthropic.NewToolResultBlock(r.ID, text, r.Error))
	}
	if s := valid(msg.Text); s != "" {
		blocks = append(blocks, anthropic.NewTextBlock(s))
	}
	return blocks
}

// valid is text as the API takes it: UTF-8, and empty if it has but spaces.
func valid(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return s
}
