package logs

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// A watcher tells of changes in directories, by one inotify instance for all
// followers. It starts with the first of them: a Store that only writes needs
// none.
//
// The directory above is watched too: a directory that was removed tells its
// own end only when nobody has a file of it open, and a reader has.
type watcher struct {
	root  string
	woken func(dir string) // "": all of them

	mu       sync.Mutex
	notify   *fsnotify.Watcher
	watched  map[string]int // followers by directory
	finished chan struct{}  // closed when the loop has ended
	shut     bool
}

// add watches a directory for one more follower. It reports false if that is
// impossible: there is no such directory, or the host is out of watches.
func (w *watcher) add(dir string) bool {
	if _, err := os.Lstat(dir); err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shut || !w.start() {
		return false
	}
	// Also for one that is watched already: it may have been made anew.
	if w.notify.Add(dir) != nil {
		return false
	}
	w.watched[dir]++
	return true
}

func (w *watcher) start() bool {
	if w.notify != nil {
		return true
	}
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return false
	}
	if err := n.Add(w.root); err != nil {
		_ = n.Close() // of no use
		return false
	}
	w.notify = n
	w.watched = map[string]int{}
	w.finished = make(chan struct{})
	go w.loop(n, w.finished) // close waits for it
	return true
}

func (w *watcher) remove(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[dir]--; w.watched[dir] > 0 {
		return
	}
	delete(w.watched, dir)
	if !w.shut {
		_ = w.notify.Remove(dir) // gone with its directory, perhaps
	}
}

func (w *watcher) loop(n *fsnotify.Watcher, finished chan struct{}) {
	defer close(finished)
	for {
		select {
		case ev, ok := <-n.Events:
			if !ok {
				return
			}
			w.tell(ev.Name)
		case _, ok := <-n.Errors:
			if !ok {
				return
			}
			w.woken("") // an overflow: anything may have changed
		}
	}
}

// tell finds whose file name is: a file in a process's directory, or that
// directory itself.
func (w *watcher) tell(name string) {
	if dir := filepath.Dir(name); dir != w.root {
		name = dir
	}
	w.woken(name)
}

func (w *watcher) close() error {
	w.mu.Lock()
	n, finished := w.notify, w.finished
	w.shut = true
	w.mu.Unlock()
	if n == nil {
		return nil
	}
	err := n.Close()
	<-finished
	return err
}
