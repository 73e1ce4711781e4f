package profile

import (
	"reflect"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// walkFields visits every key of the format, groups before what is inside them,
// with its path; [] stands for any item of a list.
func walkFields(visit func(path string, f field)) {
	walkFrom(fieldsOf(reflect.TypeFor[cluster.Cluster]()), "", visit)
}

func walkFrom(fields []field, path string, visit func(string, field)) {
	for _, f := range fields {
		at := yamltree.Key(path, f.Key)
		visit(at, f)
		if f.Type.Kind() == reflect.Slice {
			at += "[]"
		}
		if inner := f.fields(); inner != nil {
			walkFrom(inner, at, visit)
		}
	}
}
