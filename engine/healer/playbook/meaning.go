package playbook

import (
	"fmt"

	"sbx/engine"
)

// Meaning explains an exit to a person, beyond its code; "" if there is
// nothing to add.
func Meaning(e engine.Exit) string {
	switch {
	case e.Error != "":
		return "it could not be started at all"
	case e.OOM:
		return "the kernel killed it: it reached its memory limit"
	case e.TimedOut:
		return "it ran into its timeout"
	case e.Code == engine.ExitNotFound:
		return "the shell did not find a program that the command names"
	case e.Code == engine.ExitNotExecutable:
		return "a program that the command names may not be executed"
	}
	if words, ok := signals[e.Signal]; ok {
		return words
	}
	switch {
	case e.Signal != "":
		return "a signal ended it"
	case e.Code > engine.ExitSignalBase && e.Code <= engine.ExitSignalBase+64:
		return fmt.Sprintf("a program that it ran was ended by signal %d", e.Code-engine.ExitSignalBase)
	case e.Code == 0:
		return "it ended by itself and called that a success"
	}
	return ""
}

// signals are why a process is ended by them.
var signals = map[string]string{
	"SIGKILL": "somebody or the kernel killed it",
	"SIGTERM": "somebody asked it to end",
	"SIGINT":  "somebody interrupted it",
	"SIGHUP":  "its terminal went away",
	"SIGSEGV": "it crashed in native code",
	"SIGBUS":  "it crashed in native code, or a file that it had mapped was cut",
	"SIGABRT": "it crashed in native code, or gave itself up",
	"SIGILL":  "it ran an instruction that this processor doesn't have",
	"SIGFPE":  "it divided by zero in native code",
	"SIGPIPE": "it wrote to a pipe that nobody reads",
	"SIGXCPU": "it used up its processor time",
	"SIGXFSZ": "it wrote a file larger than it may",
	"SIGSYS":  "it made a system call that it may not make",
}
