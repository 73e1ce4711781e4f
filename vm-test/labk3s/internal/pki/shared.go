package pki

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// sharedFile is a file on its way from one server to another.
type sharedFile struct {
	Timestamp time.Time
	Content   []byte
}

// Export is the document with which a server hands the shared files to another.
func (f Files) Export() ([]byte, error) {
	out := map[string]sharedFile{}
	for name, path := range f.Shared() {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		out[name] = sharedFile{Timestamp: st.ModTime(), Content: text}
	}
	return json.Marshal(out)
}

// Import writes the shared files that another server has exported. Names that are
// not known here are left out.
func (f Files) Import(doc []byte) error {
	var in map[string]sharedFile
	if err := json.Unmarshal(doc, &in); err != nil {
		return fmt.Errorf("reading what the server sent to join with: %w", err)
	}
	if len(in["ServerCA"].Content) == 0 {
		return errors.New("the server sent no CA to join with")
	}
	paths := f.Shared()
	for name, file := range in {
		if path, known := paths[name]; known {
			if err := writeFile(path, file.Content); err != nil {
				return err
			}
		}
	}
	return nil
}
