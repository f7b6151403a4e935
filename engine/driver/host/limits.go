//go:build linux

package host

import (
	"sbx/engine"
	"sbx/engine/driver/host/limit"
)

// openLimits finds out where limits can be set.
func (h *Host) openLimits() {
	unified := ""
	if h.cgroups != nil {
		unified = h.cgroups.root
	}
	if h.cfg.NoCgroups {
		h.limits = limit.None("cgroups are switched off")
		return
	}
	h.limits = limit.Open(unified, h.tag)
}

// limits are those of all that runs in the box together.
func (b *box) limits() engine.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bounds
}

// bound changes them; the next start sets them.
func (b *box) bound(l engine.Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bounds = l
}

// rlimits stand in for groups that this host doesn't offer. namespaced says
// that an ordinary user's sandboxes get a user namespace each.
func (b *box) rlimits(namespaced bool) []limit.Rlimit {
	return b.host.limits.Rlimits(b.limits(), b.host.alone(b.uid, namespaced))
}

// alone: the kernel counts the processes of each sandbox apart.
func (h *Host) alone(uid int, namespaced bool) bool {
	return h.root && uid != 0 || !h.root && namespaced
}

// placed says that the start is over, one way or the other.
func (p *proc) placed() {
	if p.place != nil {
		p.place.Begun()
	}
}

// enforced completes what is said of the confinement with what holds sandboxes
// to their limits.
func (h *Host) enforced(i *engine.Isolation) {
	by, stronger := h.limits.Enforced(h.alone(h.uids.first, i.Name == bubblewrapName))

	by.Disk = "weighed every few seconds: what is over is stopped"
	i.Limits = by
	i.Stronger = append(i.Stronger, stronger...)
}
