package profile

import "strings"

// nearest returns the name that word was probably meant to be, or "". A third
// of the letters may differ, and case, dashes and underscores do not count.
func nearest(word string, names []string) string {
	best, least := "", len(word)/3+1
	for _, name := range names {
		if d := distance(fold(word), fold(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, delete, replace, or swap with their
// neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	before, last, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			cur[j] = min(last[j]+1, cur[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, last, cur = last, cur, before
	}
	return last[len(b)]
}
