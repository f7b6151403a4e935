package emu

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// arrows are the keys that are sent as CSI and a letter, or as SS3 and the
// letter where the program asked for that (DECCKM).
var arrows = map[rune]byte{
	tea.KeyUp: 'A', tea.KeyDown: 'B', tea.KeyRight: 'C', tea.KeyLeft: 'D', tea.KeyHome: 'H', tea.KeyEnd: 'F',
}

// tildes are the keys that are sent as CSI, a number and a tilde.
var tildes = map[rune]int{
	tea.KeyInsert: 2, tea.KeyDelete: 3, tea.KeyPgUp: 5, tea.KeyPgDown: 6,
	tea.KeyF5: 15, tea.KeyF6: 17, tea.KeyF7: 18, tea.KeyF8: 19, tea.KeyF9: 20, tea.KeyF10: 21, tea.KeyF11: 23, tea.KeyF12: 24,
}

var functions = map[rune]byte{tea.KeyF1: 'P', tea.KeyF2: 'Q', tea.KeyF3: 'R', tea.KeyF4: 'S'}

// Encode spells a key as xterm does; nothing for one that it doesn't have.
func (s *Screen) Encode(k tea.Key) []byte {
	if k.Text != "" && k.Mod&^tea.ModShift == 0 {
		return []byte(k.Text)
	}
	mod := modifier(k.Mod)
	if letter, ok := arrows[k.Code]; ok {
		switch {
		case mod > 1:
			return fmt.Appendf(nil, "\x1b[1;%d%c", mod, letter)
		case s.Is(ansi.ModeCursorKeys):
			return []byte{0x1b, 'O', letter}
		}
		return []byte{0x1b, '[', letter}
	}
	if number, ok := tildes[k.Code]; ok {
		if mod > 1 {
			return fmt.Appendf(nil, "\x1b[%d;%d~", number, mod)
		}
		return fmt.Appendf(nil, "\x1b[%d~", number)
	}
	if letter, ok := functions[k.Code]; ok {
		if mod > 1 {
			return fmt.Appendf(nil, "\x1b[1;%d%c", mod, letter)
		}
		return []byte{0x1b, 'O', letter}
	}
	b := plain(k)
	if len(b) > 0 && k.Mod&tea.ModAlt != 0 {
		b = append([]byte{0x1b}, b...)
	}
	return b
}

// plain are the keys that are one byte, and letters with ctrl.
func plain(k tea.Key) []byte {
	switch k.Code {
	case tea.KeyEnter, tea.KeyKpEnter:
		return []byte{'\r'}
	case tea.KeyTab:
		if k.Mod&tea.ModShift != 0 {
			return []byte("\x1b[Z")
		}
		return []byte{'\t'}
	case tea.KeyBackspace:
		if k.Mod&tea.ModCtrl != 0 {
			return []byte{0x08}
		}
		return []byte{0x7f}
	case tea.KeyEscape:
		return []byte{0x1b}
	case tea.KeySpace:
		if k.Mod&tea.ModCtrl != 0 {
			return []byte{0}
		}
		return []byte{' '}
	}
	if k.Mod&tea.ModCtrl != 0 {
		switch r := k.Code; {
		case r >= 'a' && r <= 'z':
			return []byte{byte(r-'a') + 1}
		case r >= '@' && r <= '_':
			return []byte{byte(r - '@')}
		case r == '/':
			return []byte{0x1f}
		}
		return nil
	}
	if k.Text != "" {
		return []byte(k.Text)
	}
	if k.Code >= ' ' && k.Code < 0x7f {
		return []byte(string(k.Code))
	}
	return nil
}

// modifier is xterm's number for modifiers; 1 is none.
func modifier(m tea.KeyMod) int {
	n := 1
	for bit, mod := range []tea.KeyMod{tea.ModShift, tea.ModAlt, tea.ModCtrl} {
		if m&mod != 0 {
			n += 1 << bit
		}
	}
	return n
}

// Paste is a text as it is pasted: marked as such where the program asked for
// that, and then unable to end the mark itself.
func (s *Screen) Paste(text string) []byte {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r")
	if !s.Is(ansi.ModeBracketedPaste) {
		return []byte(text)
	}
	text = strings.ReplaceAll(text, "\x1b", "")
	return []byte("\x1b[200~" + text + "\x1b[201~")
}
