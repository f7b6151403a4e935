package engine

// The events of chats and keys.
type (
	// ChatMessaged: a message of a chat was made, or grew, or ended.
	ChatMessaged struct {
		Message Message `json:"message"`
	}
	// KeyChanged: a virtual key was issued or revoked.
	KeyChanged struct {
		Key Key `json:"key"`
	}
)

// Their kinds.
const (
	KindChatMessaged = "chat.message"
	KindKeyChanged   = "key.changed"
)

func (ChatMessaged) Kind() string { return KindChatMessaged }
func (KeyChanged) Kind() string   { return KindKeyChanged }

func (e ChatMessaged) Of() SandboxID { return e.Message.Sandbox }
func (e KeyChanged) Of() SandboxID   { return e.Key.Sandbox }
