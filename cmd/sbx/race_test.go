//go:build race

package main

// raceFlags build the binary under test as the tests themselves are built.
var raceFlags = []string{"-race"}
