//go:build race

package pool

// interleavings of one check: SQLite in Go is slow under the race detector.
const interleavings = 10
