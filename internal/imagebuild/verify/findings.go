package verify

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// findings collects problems; it is safe for concurrent use.
type findings struct {
	mu      sync.Mutex
	list    []Problem
	perFile map[string]int
}

func newFindings() *findings { return &findings{list: []Problem{}, perFile: map[string]int{}} }

func (f *findings) add(file, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perFile[file]++
	if f.perFile[file] <= maxPerFile {
		f.list = append(f.list, Problem{File: file, What: fmt.Sprintf(format, args...)})
	}
}

// any reports whether something is wrong with a file.
func (f *findings) any(file string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.perFile[file] > 0
}

// sorted returns the problems by file, and within one in the order they were found.
func (f *findings) sorted() []Problem {
	for file, n := range f.perFile {
		if n > maxPerFile {
			f.list = append(f.list, Problem{File: file, What: fmt.Sprintf("and %d more problems", n-maxPerFile)})
		}
	}
	slices.SortStableFunc(f.list, func(a, b Problem) int { return cmp.Compare(a.File, b.File) })
	return f.list
}

// readSmall reads a file that must not have more than limit bytes.
func readSmall(root *os.Root, name string, limit int64) ([]byte, error) {
	st, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("is not a regular file")
	}
	if st.Size() > limit {
		return nil, fmt.Errorf("has %d bytes, more than %d", st.Size(), limit)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
