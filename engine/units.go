package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that reads and writes as "90s" in JSON and TOML.
type Duration time.Duration

// D is the time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes it as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads; a duration is never
// negative here.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as 90s, 5m or 1h30m", b)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative: a duration is 0s or more", b)
	}
	*d = Duration(v)
	return nil
}

// Size is a number of bytes that reads and writes as "2GiB" in JSON and TOML.
type Size int64

// The binary units of a [Size].
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

var sizeUnits = []struct {
	suffix string
	size   Size
}{
	{"TiB", TiB},
	{"GiB", GiB},
	{"MiB", MiB},
	{"KiB", KiB},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"KB", 1e3},
	{"T", TiB},
	{"G", GiB},
	{"M", MiB},
	{"K", KiB},
	{"B", 1},
}

// String is the size in the largest binary unit that keeps it exact.
func (s Size) String() string {
	if s == 0 {
		return "0B"
	}
	for _, u := range sizeUnits[:4] {
		if s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText writes what [Size.UnmarshalText] reads back exactly.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a number with a unit: 512MiB, 2G, 1.5GB, 4096.
func (s *Size) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	unit := Size(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v*float64(unit) > 1<<62 {
		return fmt.Errorf("%q is not a size: write it as 512MiB or 2GiB", b)
	}
	*s = Size(v * float64(unit))
	return nil
}
