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

func (a *App) say(role themes.Role, text string) {
	a.toast = toast{text: text, role: role, at: a.w.now, until: a.w.now.Add(toastTime)}
}
