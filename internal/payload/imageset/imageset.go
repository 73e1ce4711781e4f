// Package imageset tells which container images objects need, and compares names of
// images as people write them.
package imageset

import (
	"maps"
	"slices"
	"strings"
)

// Of are the images that objects need, in full form, sorted: those of their
// containers, and those that a container is told to start others with. Operators are
// told by arguments that end in -image and by variables that end in _IMAGE.
func Of(objects []map[string]any) []string {
	found := map[string]bool{}
	for _, o := range objects {
		walk(o, found)
	}
	return slices.Sorted(maps.Keys(found))
}

// walk looks for lists of containers, wherever they are: in a pod, in a template, in
// an object of a kind that has one.
func walk(v any, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == "containers" || key == "initContainers" || key == "ephemeralContainers" {
				containers(inner, found)
			}
			walk(inner, found)
		}
	case []any:
		for _, inner := range v {
			walk(inner, found)
		}
	}
}

func containers(v any, found map[string]bool) {
	list, _ := v.([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		note(c["image"], found)
		arguments(append(texts(c["command"]), texts(c["args"])...), found)
		env, _ := c["env"].([]any)
		for _, e := range env {
			variable, _ := e.(map[string]any)
			if name, _ := variable["name"].(string); strings.HasSuffix(name, "_IMAGE") {
				note(variable["value"], found)
			}
		}
	}
}

// arguments reads --x-image=REF and --x-image REF.
func arguments(words []string, found map[string]bool) {
	for i, w := range words {
		flag, value, given := strings.Cut(w, "=")
		if !strings.HasPrefix(flag, "-") || !strings.HasSuffix(flag, "-image") {
			continue
		}
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		note(value, found)
	}
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func note(v any, found map[string]bool) {
	if s, _ := v.(string); s != "" {
		found[Full(s)] = true
	}
}

// Full is a reference with everything that may be left out of it: docker.io stands
// for a missing registry, library for a missing owner there, latest for a missing tag.
// A digest stays, and takes the place of the tag.
func Full(ref string) string {
	name, digest, pinned := strings.Cut(ref, "@")
	host, rest, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, rest = "docker.io", name
	}
	if host == "index.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	last := rest[strings.LastIndex(rest, "/")+1:]
	repository, tag, tagged := strings.Cut(last, ":")
	rest = rest[:len(rest)-len(last)] + repository
	switch {
	case pinned:
		return host + "/" + rest + "@" + digest
	case !tagged:
		tag = "latest"
	}
	return host + "/" + rest + ":" + tag
}

// Missing are the images of need that none of the lists has, in the order of need.
// All are in full form.
func Missing(need []string, have ...[]string) []string {
	all := map[string]bool{}
	for _, list := range have {
		for _, ref := range list {
			all[ref] = true
		}
	}
	var out []string
	for _, ref := range need {
		if !all[ref] {
			out = append(out, ref)
		}
	}
	return out
}
