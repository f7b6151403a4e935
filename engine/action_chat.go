package engine

// The bodies of chats, keys and notices.
type (
	// Say says something to the model in the chat about a sandbox. The receipt
	// names the message, whose State is that of the turn. A turn or a heal that
	// is under way is a Conflict that names its owner.
	Say struct {
		Sandbox SandboxID `json:"sandbox"`
		Text    string    `json:"text"`
		// Ask has each call that acts approved first; nil: as the turn before.
		Ask *bool `json:"ask,omitempty"`
		// TakeOver ends a heal that is under way: what it changed is rolled
		// back, and its transcript goes into the chat.
		TakeOver bool `json:"takeOver,omitempty"`
		// Fresh begins the conversation anew: the model is told nothing of what
		// was said before. The history stays.
		Fresh bool `json:"fresh,omitempty"`
	}
	// StopChat ends the turn under way. What it did stays; its checkpoint is
	// what to go back to.
	StopChat struct {
		Sandbox SandboxID `json:"sandbox"`
	}
	// AnswerApproval answers a tool call that waits to be approved.
	AnswerApproval struct {
		Message MessageID `json:"message"`
		Answer  Answer    `json:"answer"`
	}
	// IssueKey makes a virtual key for the gateway. The receipt has it, once: one
	// that is asked for again has not.
	IssueKey struct {
		Sandbox SandboxID `json:"sandbox"`
		Name    string    `json:"name,omitempty"`
		For     Duration  `json:"for,omitempty"` // 0: until revoked
	}
	// RevokeKey ends a key, and the requests that it is used for.
	RevokeKey struct {
		Key KeyID `json:"key"`
	}
	// TestNotify sends a notice that tells of nothing. The receipt names it.
	TestNotify struct{}
)

func (a Say) Subject() string            { return string(a.Sandbox) }
func (a StopChat) Subject() string       { return string(a.Sandbox) }
func (a AnswerApproval) Subject() string { return string(a.Message) }
func (a IssueKey) Subject() string       { return string(a.Sandbox) }
func (a RevokeKey) Subject() string      { return string(a.Key) }
func (TestNotify) Subject() string       { return "" }

var (
	say = row("chat.say", "talk about", Operator, Harmless, "POST /v1/sandboxes/{id}/chat",
		func(a *Say, id string) { a.Sandbox = SandboxID(id) })
	stopChat = row("chat.stop", "stop the chat about", Operator, Harmless, "DELETE /v1/sandboxes/{id}/chat",
		func(a *StopChat, id string) { a.Sandbox = SandboxID(id) })
	answerApproval = row("chat.answer", "answer", Operator, Harmless, "POST /v1/messages/{id}/answer",
		func(a *AnswerApproval, id string) { a.Message = MessageID(id) })
	issueKey = row("key.issue", "issue a key for", Operator, Harmless, "POST /v1/sandboxes/{id}/keys",
		func(a *IssueKey, id string) { a.Sandbox = SandboxID(id) })
	revokeKey = row("key.revoke", "revoke", Operator, Confirm, "DELETE /v1/keys/{id}",
		func(a *RevokeKey, id string) { a.Key = KeyID(id) })
	testNotify = row[TestNotify]("notify.test", "send a test notice", Operator, Harmless, "POST /v1/notices/test", nil)
)

func (Say) entry() *ActionEntry            { return say }
func (StopChat) entry() *ActionEntry       { return stopChat }
func (AnswerApproval) entry() *ActionEntry { return answerApproval }
func (IssueKey) entry() *ActionEntry       { return issueKey }
func (RevokeKey) entry() *ActionEntry      { return revokeKey }
func (TestNotify) entry() *ActionEntry     { return testNotify }
