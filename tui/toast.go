package tui

import (
	"time"

	"sbx/themes"
)

// toastTime is how long a toast stays.
const toastTime = 6 * time.Second

// toast is a short message on the status row.
type toast struct {
	text  string
	role  themes.Role
	at    time.Time
	until time.Time
}

// saidMost is how many messages are remembered.
const saidMost = 100

// say puts a message on the status row.
func (a *App) say(role themes.Role, text string) {
	a.toast = toast{text: text, role: role, at: a.w.now, until: a.w.now.Add(toastTime)}
	a.said = append(tail(a.said, saidMost-1), a.toast)
}
