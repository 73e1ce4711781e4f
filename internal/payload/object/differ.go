package object

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences are the paths at which two objects differ, such as
// spec.template.spec.containers[0].image, sorted. Values are left out: an object
// may be a secret.
func Differences(a, b map[string]any) []string {
	var out []string
	compare("", a, b, &out)
	slices.Sort(out)
	return out
}

func compare(path string, a, b any, out *[]string) {
	am, aIsMap := a.(map[string]any)
	bm, bIsMap := b.(map[string]any)
	if aIsMap && bIsMap {
		compareMaps(path, am, bm, out)
		return
	}
	al, aIsList := a.([]any)
	bl, bIsList := b.([]any)
	if aIsList && bIsList && len(al) == len(bl) {
		for i := range al {
			compare(fmt.Sprintf("%s[%d]", path, i), al[i], bl[i], out)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		*out = append(*out, path)
	}
}

func compareMaps(path string, a, b map[string]any, out *[]string) {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, b)
	for key := range keys {
		compare(join(path, key), a[key], b[key], out)
	}
}

// join puts a key behind a path; a key with dots, as labels have, is quoted.
func join(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return path + `["` + key + `"]`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
