package ready

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// cloudInit reads what cloud-init leaves in its run directory: status.json while
// it runs, result.json when it has ended.
func cloudInit(dir string) CloudInit {
	var c CloudInit
	if data, err := os.ReadFile(filepath.Join(dir, "status.json")); err == nil {
		c = parseStatus(data)
	}
	c.Finished = exists(filepath.Join(dir, "result.json"))
	return c
}

// stage is what cloud-init reports of one of its stages.
type stage struct {
	Errors      []string            `json:"errors"`
	Recoverable map[string][]string `json:"recoverable_errors"` // by log level
}

func parseStatus(data []byte) CloudInit {
	var c CloudInit
	var doc struct {
		V1 map[string]json.RawMessage `json:"v1"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return CloudInit{Errors: []string{"its status cannot be read: " + err.Error()}}
	}
	_ = json.Unmarshal(doc.V1["datasource"], &c.DataSource) // null until one is found
	for _, name := range []string{"init-local", "init", "modules-config", "modules-final"} {
		var s stage
		if json.Unmarshal(doc.V1[name], &s) != nil {
			continue
		}
		c.Errors = append(c.Errors, s.Errors...)
		for _, level := range []string{"WARNING", "ERROR", "CRITICAL", "DEPRECATED"} {
			for _, text := range s.Recoverable[level] {
				if !slices.Contains(c.Errors, text) {
					c.Warnings = append(c.Warnings, text)
				}
			}
		}
	}
	return c
}
