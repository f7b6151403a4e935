//go:build linux

// Package shim starts what sandboxes run and stays with it: it forks children
// from plain orders, reaps them by their pidfd, hands their output on, signals
// them, and kills their whole trees.
//
//	Order ── Runner.Start ──► Child ── root ── init ── main ── …   bubblewrap: its monitor, its pid 1
//	                                └─ root = main ── …            else
//
// The one rule: it knows processes and nothing else. What may be run, by whom
// and confined how, was decided by whoever wrote the order; an order is plain
// data, so that it can be carried out in this process or in another.
package shim
