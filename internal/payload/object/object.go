// Package object is an object of the Kubernetes API as a value: a map as JSON
// decodes it (map[string]any, []any, string, bool, int64, float64). Who decides
// about objects and who talks to the API server share only this form, so that
// decisions need no client.
package object

import (
	"errors"
	"strings"
	"time"
)

// ErrNotFound says that the API server has no such object, or does not know its kind.
var ErrNotFound = errors.New("not found")

// Ref names one object.
type Ref struct {
	APIVersion string // such as apps/v1
	Kind       string
	Namespace  string // empty for what belongs to the whole cluster
	Name       string
}

// Of is the reference to o.
func Of(o map[string]any) Ref {
	return Ref{APIVersion: Text(o, "apiVersion"), Kind: Text(o, "kind"), Namespace: Text(o, "metadata", "namespace"), Name: Text(o, "metadata", "name")}
}

// Group is the API group, empty for the core group.
func (r Ref) Group() string {
	group, _, found := strings.Cut(r.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// String is how people write a reference: Deployment flux-system/source-controller.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// At is the value at a path of keys, nil where there is none.
func At(o map[string]any, path ...string) any {
	var here any = o
	for _, key := range path {
		m, ok := here.(map[string]any)
		if !ok {
			return nil
		}
		here = m[key]
	}
	return here
}

// Text is the string at a path, empty where there is none.
func Text(o map[string]any, path ...string) string {
	s, _ := At(o, path...).(string)
	return s
}

// Int is the whole number at a path, 0 where there is none.
func Int(o map[string]any, path ...string) int64 {
	switch n := At(o, path...).(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	case int:
		return int64(n)
	default:
		return 0
	}
}

// Time is the RFC 3339 time at a path, the zero time where there is none.
func Time(o map[string]any, path ...string) time.Time {
	t, err := time.Parse(time.RFC3339, Text(o, path...))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Maps are the objects of the list at a path; items of other kinds are left out.
func Maps(o map[string]any, path ...string) []map[string]any {
	list, _ := At(o, path...).([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// Condition is one entry of status.conditions.
type Condition struct {
	Status  string // True, False or Unknown; empty where there is no such condition
	Reason  string
	Message string
}

// True reports whether the condition holds.
func (c Condition) True() bool { return c.Status == "True" }

// String says why the condition is as it is.
func (c Condition) String() string {
	switch {
	case c.Status == "":
		return "no report yet"
	case c.Message != "":
		return c.Message
	case c.Reason != "":
		return c.Reason
	default:
		return "is " + c.Status
	}
}

// ConditionOf is the condition of a type in the list at path, status.conditions
// where no path is given.
func ConditionOf(o map[string]any, kind string, path ...string) Condition {
	if len(path) == 0 {
		path = []string{"status", "conditions"}
	}
	for _, c := range Maps(o, path...) {
		if Text(c, "type") == kind {
			return Condition{Status: Text(c, "status"), Reason: Text(c, "reason"), Message: Text(c, "message")}
		}
	}
	return Condition{}
}
