// Package greet greets.
package greet

// Hello greets somebody.
func Hello(name string) string { return "hello " + name }
