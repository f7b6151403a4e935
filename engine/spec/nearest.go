package spec

import "strings"

// nearest is the known word that somebody who wrote word may have meant, or "".
func nearest(word string, known []string) string {
	plain := strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	best, least := "", max(2, len(plain)/3)+1
	for _, k := range known {
		if d := distance(plain, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters must be put in, left out or changed.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
