// Package tui is the dashboard: the fleet, a sandbox, its healer and its logs
// on one screen.
//
// Data comes in one way: a feed reads the engine's journal and gauges and hands
// the program at most twenty frames a second, each applied once to the one
// snapshot that every component reads. Intent goes out one way: a component
// returns a command from command.go, the only file that calls the engine, and
// what it changed comes back as an event like anyone else's. The dashboard
// never predicts.
//
// The one rule: nothing that an engine, a sandbox or a model wrote reaches the
// terminal but through package draw, which cleans it. The package can't tell an
// embedded engine from a remote one, and imports neither.
package tui
