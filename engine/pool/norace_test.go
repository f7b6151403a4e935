//go:build !race

package pool

// interleavings of one check; rapid makes a hundred checks.
const interleavings = 100
