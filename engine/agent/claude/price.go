package claude

import (
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"sbx/engine"
)

// Price is what a million tokens cost, in dollars.
type Price struct {
	Input  float64 `json:"input" toml:"input"`
	Output float64 `json:"output" toml:"output"`
	// CacheRead is the part of Input that a token read from the cache costs;
	// zero: a tenth.
	CacheRead float64 `json:"cacheRead,omitempty" toml:"cache_read"`
}

// The parts of the input price that the prompt cache costs by default.
const (
	cacheWrite = 1.25 // kept for five minutes
	cacheRead  = 0.1
)

// prices are those of the provider's page in November 2026, by how a model's
// name begins. A family's own line is for what it has that isn't named.
var prices = map[string]Price{
	"claude-fable":      {Input: 10, Output: 50},
	"claude-fable-5-1":  {Input: 10, Output: 50, CacheRead: 0.025},
	"claude-mythos":     {Input: 10, Output: 50},
	"claude-mythos-5-1": {Input: 10, Output: 50, CacheRead: 0.025},
	"claude-opus":       {Input: 5, Output: 25},
	"claude-opus-5-5":   {Input: 4, Output: 20, CacheRead: 0.05},
	"claude-sonnet":     {Input: 3, Output: 15},
	"claude-sonnet-5":   {Input: 2, Output: 10},
	"claude-sonnet-5-5": {Input: 2, Output: 10, CacheRead: 0.05},
	"claude-haiku":      {Input: 1, Output: 5},
	"claude-haiku-5-5":  {Input: 0.5, Output: 2.5}, // of long prompts: a budget is rather early than late
	// A Claude that isn't known yet costs as the dearest that is.
	"claude": {Input: 10, Output: 50},
}

// priceOf is a model's price; zero for what nobody has priced, such as a model
// on one's own machine.
func priceOf(model string, own map[string]Price) Price {
	for _, table := range []map[string]Price{own, prices} {
		best, found := "", false
		for prefix := range table {
			if strings.HasPrefix(model, prefix) && (!found || len(prefix) > len(best)) {
				best, found = prefix, true
			}
		}
		if found {
			return table[best]
		}
	}
	return Price{}
}

// spent is what a turn cost. Numbers below zero count as none.
func (p Price) spent(u anthropic.Usage) engine.Spent {
	s := engine.Spent{
		InputTokens:  max(0, u.InputTokens),
		CacheWrites:  max(0, u.CacheCreationInputTokens),
		CacheReads:   max(0, u.CacheReadInputTokens),
		OutputTokens: max(0, u.OutputTokens),
	}
	s.Dollars = p.dollars(s)
	return s
}

func (p Price) dollars(s engine.Spent) float64 {
	read := p.CacheRead
	if read == 0 {
		read = cacheRead
	}
	input := float64(s.InputTokens) + cacheWrite*float64(s.CacheWrites) + read*float64(s.CacheReads)
	return (input*p.Input + float64(s.OutputTokens)*p.Output) / 1e6
}

// Cost is what tokens of a model cost, in dollars; 0 for a model that nobody
// has priced.
func Cost(model string, s engine.Spent) float64 {
	return priceOf(model, nil).dollars(s)
}
