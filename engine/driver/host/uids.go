//go:build linux

package host

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
)

// uidRange are the uids of their own that sandboxes of an engine that runs as
// root get, both ends included.
type uidRange struct{ first, last int }

// Where uids of sandboxes begin: above what systems give to people, services
// and containers; and how many a data directory has.
const (
	lowestUID  = 1 << 20
	highestUID = 1<<31 - 2
	uidsEach   = 1 << 14
)

// rangeOf picks the range of a data directory by its tag, so that two engines
// of one host hand out different uids without asking each other. uidMap is
// /proc/self/uid_map: in a container that has some uids only, ranges are made
// of those.
func rangeOf(tag []byte, uidMap string) uidRange {
	low, high, size := lowestUID, highestUID, uidsEach
	if top := mapped(uidMap); top < highestUID {
		// What a container has is for its users as well: its upper half.
		low, high = top/2, top
		size = max(1, (high-low)/16)
	}
	n := max(1, (high-low)/size)
	first := low + size*int(binary.BigEndian.Uint64(tag)%uint64(n))
	return uidRange{first, first + size - 1}
}

// mapped is the highest uid of the extent that root is in.
func mapped(uidMap string) int {
	for line := range strings.Lines(uidMap) {
		var inside, outside, count int
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && inside == 0 {
			return min(count-1, highestUID)
		}
	}
	return highestUID
}

func readUIDMap() string {
	data, _ := os.ReadFile("/proc/self/uid_map") // a kernel without namespaces maps all
	return string(data)
}
