package profile

import (
	"encoding"
	"reflect"
	"slices"
)

// field is what the tags of a struct field say about a key of the format.
type field struct {
	Key, Doc, Default string
	Form, KeyForm     string
	Env, Need         bool
	Type              reflect.Type
	Index             int
}

// fieldsOf lists the keys of a struct type in the order they are declared.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		out = append(out, field{
			Key: f.Tag.Get("yaml"), Doc: f.Tag.Get("doc"), Default: f.Tag.Get("default"),
			Form: f.Tag.Get("form"), KeyForm: f.Tag.Get("keyform"),
			Env: f.Tag.Get("scope") == "env", Need: f.Tag.Get("need") == "yes",
			Type: f.Type, Index: i,
		})
	}
	return out
}

func find(fields []field, key string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.Key == key })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// isText reports whether values of the type are written as one text, by
// UnmarshalText or as a string.
func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// isGroup reports whether values of the type are mappings with known keys.
func isGroup(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isText(t) }

// fields lists the keys inside a field that is a group, or inside its items.
func (f field) fields() []field {
	t := f.Type
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if !isGroup(t) {
		return nil
	}
	return fieldsOf(t)
}

// hasEnv reports whether an overlay may set something inside a group.
func (f field) hasEnv() bool {
	if !isGroup(f.Type) {
		return false
	}
	return slices.ContainsFunc(f.fields(), func(inner field) bool { return inner.Env || inner.hasEnv() })
}

// item is the field as it holds for one item of a list or mapping.
func (f field) item() field {
	f.Type, f.Default, f.Need, f.KeyForm = f.Type.Elem(), "", false, ""
	return f
}

// valuesOf lists what an enumeration may be, or is nil.
func valuesOf(t reflect.Type) []string {
	if e, ok := reflect.Zero(t).Interface().(interface{ Values() []string }); ok {
		return e.Values()
	}
	return nil
}
