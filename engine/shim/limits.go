//go:build linux

package shim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// A Visit is a group of cgroup version 1 to be in while forking, and the one
// to go back to: their files of threads. Version 1 lets nothing be born in a
// group but what a member of it forks.
type Visit struct {
	Into string `json:"into"`
	Back string `json:"back"`
}

// visit takes this thread into the groups, and returns those that it is in.
func visit(visits []Visit) (in []Visit, err error) {
	for i, v := range visits {
		if err := os.WriteFile(v.Into, []byte("0"), 0); err != nil {
			return visits[:i], fmt.Errorf("enter the sandbox's cgroup: %w", err)
		}
	}
	return visits, nil
}

// leave takes this thread out of groups, and returns those that it could not
// leave: it would be held to a sandbox's limits in them, and tries again.
func leave(in []Visit) (left []Visit) {
	for _, v := range in {
		if err := os.WriteFile(v.Back, []byte("0"), 0); err != nil {
			left = append(left, v)
		}
	}
	return left
}

// OOMKills reads how many processes the kernel has killed for want of memory,
// from a cgroup's memory.events or memory.oom_control.
func OOMKills(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0 // gone: nobody is left to ask
	}
	for line := range bytes.Lines(data) {
		if v, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(v))) // the kernel's own
			return n
		}
	}
	return 0
}
