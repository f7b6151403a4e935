package detect

import "container/heap"

// schedule is the targets that wait, the next one first.
type schedule []*target

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push is for package heap.
func (s *schedule) Push(x any) {
	t := x.(*target)
	t.place = len(*s)
	*s = append(*s, t)
}

// Pop is for package heap.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	t := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	t.place = -1
	return t
}

// put makes a target wait for its time, or not at all.
func (s *schedule) put(t *target) {
	waits := t.era.watch != nothing && !t.busy
	switch {
	case waits && t.place >= 0:
		heap.Fix(s, t.place)
	case waits:
		heap.Push(s, t)
	default:
		s.drop(t)
	}
}

func (s *schedule) drop(t *target) {
	if t.place >= 0 {
		heap.Remove(s, t.place)
	}
}
