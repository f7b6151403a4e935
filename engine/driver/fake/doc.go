// Package fake is a driver in memory, for tests of what runs on a driver: its
// workspaces are maps, its processes goroutines that run a few words of shell
// or the test's own programs, its network pipes. It works inside a
// testing/synctest bubble.
//
// The one rule: it passes package drivertest as far as that asks for no real
// shell, so that what is tested on it means something.
package fake
