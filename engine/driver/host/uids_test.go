//go:build linux

package host

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

func TestEveryDataDirectoryHasUIDsOfItsOwn(t *testing.T) {
	const everything = "         0          0 4294967295\n"
	seen := map[int]string{}
	for i := range 50 {
		dir := fmt.Sprint("/var/lib/sbx-", i)
		sum := sha256.Sum256([]byte(dir))
		r := rangeOf(sum[:8], everything)
		if other, taken := seen[r.first]; taken {
			t.Errorf("%s and %s share the uids from %d", dir, other, r.first)
		}
		seen[r.first] = dir
		if r.first < lowestUID || r.last > highestUID || r.last-r.first != uidsEach-1 || (r.first-lowestUID)%uidsEach != 0 {
			t.Errorf("%s: %+v", dir, r)
		}
		if again := rangeOf(sum[:8], everything); again != r {
			t.Errorf("%s: %+v and then %+v", dir, r, again)
		}
	}
}

func TestAContainersUIDsAreEnough(t *testing.T) {
	for _, c := range []struct {
		uidMap    string
		low, high int
	}{
		{"0 100000 65536\n", 32000, 65535},
		{"0 1000 1\n1 100000 65536\n", 0, 65536},
		{"", lowestUID, highestUID},
		{"nonsense", lowestUID, highestUID},
	} {
		if r := rangeOf([]byte("12345678"), c.uidMap); r.first < c.low || r.last > c.high || r.last < r.first {
			t.Errorf("%q gives %+v", c.uidMap, r)
		}
	}
}
