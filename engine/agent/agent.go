// Package agent is a model that uses tools: heals and chats share it.
//
// The one rule: a step is told before and after it is taken, a tool call is
// never executed unless the whole turn that made it arrived, and the calls of a
// turn run one after another in the order the model gave.
package agent
