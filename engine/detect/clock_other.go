//go:build !linux

package detect

import "time"

// Suspended is not known here: only late ticks tell of sleep.
func Suspended() time.Duration { return 0 }
