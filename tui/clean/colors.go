package clean

import (
	"strconv"
	"strings"
)

// Reset ends all attributes. Every line of [Colors] that sets one ends with it.
const Reset = "\x1b[0m"

// Colors is Line, but keeps the colours that s sets: each is read, checked and
// written anew, and none outlives the line. Blinking and hiding are left out.
func Colors(s string) string {
	if Plain(s) {
		return s
	}
	var b strings.Builder
	colored := false
	for {
		before, after, ok := strings.Cut(s, "\x1b[")
		b.WriteString(Line(before))
		if !ok {
			break
		}
		params, rest, isSGR := sgr(after)
		if !isSGR {
			b.WriteString("␛[")
			s = after
			continue
		}
		if codes := allowed(params); codes != "" {
			b.WriteString("\x1b[" + codes + "m")
			colored = true
		}
		s = rest
	}
	if colored {
		b.WriteString(Reset)
	}
	return b.String()
}

// sgr splits the parameters of a colour sequence from what follows it.
func sgr(s string) (params, rest string, ok bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == 'm':
			return s[:i], s[i+1:], true
		case c != ';' && c != ':' && (c < '0' || c > '9'), i > 40:
			return "", s, false
		}
	}
	return "", s, false
}

// allowed is the parameters that only colour, written anew.
func allowed(params string) string {
	var out []string
	nums := numbers(params)
	for i := 0; i < len(nums); i++ {
		n := nums[i]
		switch {
		case n == 38 || n == 48:
			used, ok := extended(nums[i+1:])
			if ok {
				out = append(out, strconv.Itoa(n))
				for _, v := range nums[i+1 : i+1+used] {
					out = append(out, strconv.Itoa(v))
				}
			}
			i += used
		case n <= 4, n == 7, n == 9, n >= 22 && n <= 24, n == 27, n == 29,
			n >= 30 && n <= 37, n == 39, n >= 40 && n <= 47, n == 49, n >= 90 && n <= 97, n >= 100 && n <= 107:
			out = append(out, strconv.Itoa(n))
		}
	}
	return strings.Join(out, ";")
}

func numbers(params string) []int {
	fields := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(fields) == 0 {
		return []int{0}
	}
	nums := make([]int, len(fields))
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || n > 255 {
			n = 255 // no such attribute: left out
		}
		nums[i] = n
	}
	return nums
}

// extended is how many numbers after 38 or 48 belong to it.
func extended(nums []int) (used int, ok bool) {
	switch {
	case len(nums) >= 2 && nums[0] == 5:
		return 2, true
	case len(nums) >= 4 && nums[0] == 2:
		return 4, true
	}
	return len(nums), false
}
