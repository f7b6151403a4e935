// Package engine is the vocabulary of sbx: every word that a frontend, a
// store and a healer must share, and nothing that does any work.
//
// Read it as a story. A [Sandbox] is a workspace and the processes that run in
// it. It has a place in the pool ([State]) and a condition ([Health]), and the
// two are never merged. Something goes wrong: a [Signal] is raised, a [Verdict]
// judges it and says why. Where the verdict is to repair, a [HealRun] opens; it
// makes [Attempt]s, an attempt takes [Step]s, and the run ends with an
// [Outcome]. Each of these facts is an [Event] in one [Journal], written in the
// transaction that made it true.
//
// An [Engine] is everything a frontend may ask. Two types implement it:
// local.Engine in this process and client.Client in another. Whoever holds one
// can't tell which: actions go in, events come out, a [Snapshot] and the events
// after it are the whole truth.
//
// The one rule of this package: it imports the standard library only.
package engine
