package themes

import (
	"math"
	"strconv"
	"strings"
)

// Color is a colour as a theme writes it: "#rrggbb", "ansi:0".."ansi:15",
// "idx:0".."idx:255", "default"; "" says nothing.
type Color string

// ParseColor checks s.
func ParseColor(s string) (Color, bool) {
	c := Color(s)
	switch {
	case s == "default":
		return c, true
	case strings.HasPrefix(s, "#"):
		_, ok := c.RGB()
		return c, ok
	case strings.HasPrefix(s, "ansi:"):
		n, ok := c.Index()
		return c, ok && n < 16
	}
	_, ok := c.Index()
	return c, ok
}

// Index is the number of a colour of the terminal's own palette.
func (c Color) Index() (int, bool) {
	_, num, ok := strings.Cut(string(c), ":")
	n, err := strconv.Atoi(num)
	known := strings.HasPrefix(string(c), "ansi:") || strings.HasPrefix(string(c), "idx:")
	return n, ok && known && err == nil && n >= 0 && n < 256
}

// RGB is a colour whose components are known: those of the terminal's own
// palette aren't.
func (c Color) RGB() (RGB, bool) {
	if len(c) != 7 || c[0] != '#' {
		return RGB{}, false
	}
	n, err := strconv.ParseUint(string(c[1:]), 16, 32)
	if err != nil {
		return RGB{}, false
	}
	return RGB{float64(n>>16&255) / 255, float64(n>>8&255) / 255, float64(n&255) / 255}, true
}

// RGB is a colour in sRGB, 0 to 1 each.
type RGB struct{ R, G, B float64 }

func linear(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

func gamma(v float64) float64 {
	v = min(1, max(0, v))
	if v <= 0.0031308 {
		return v * 12.92
	}
	return 1.055*math.Pow(v, 1/2.4) - 0.055
}

func (c RGB) luminance() float64 {
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// Contrast is WCAG's ratio of two colours: 1 to 21.
func Contrast(a, b RGB) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// Sight is a way of seeing colours.
type Sight string

// The three dichromacies that themes are checked under.
const (
	Deutan Sight = "deutan"
	Protan Sight = "protan"
	Tritan Sight = "tritan"
)

// sights are the matrices of Machado, Oliveira and Fernandes (2009), severity
// 1, in linear RGB.
var sights = map[Sight][3][3]float64{
	Protan: {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	Deutan: {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	Tritan: {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// As is the colour as such eyes see it.
func (c RGB) As(s Sight) RGB {
	m, ok := sights[s]
	if !ok {
		return c
	}
	in := [3]float64{linear(c.R), linear(c.G), linear(c.B)}
	var out [3]float64
	for i, row := range m {
		out[i] = gamma(row[0]*in[0] + row[1]*in[1] + row[2]*in[2])
	}
	return RGB{out[0], out[1], out[2]}
}

// lab is the colour in CIELAB under D65.
func (c RGB) lab() [3]float64 {
	r, g, b := linear(c.R), linear(c.G), linear(c.B)
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	x := f((0.4124564*r + 0.3575761*g + 0.1804375*b) / 0.95047)
	y := f(0.2126729*r + 0.7151522*g + 0.0721750*b)
	z := f((0.0193339*r + 0.1191920*g + 0.9503041*b) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// Distance is how far apart two colours look: CIELAB's ΔE (1976).
func Distance(a, b RGB) float64 {
	p, q := a.lab(), b.lab()
	return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
}
