package profile

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/profile/form"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// scalar decodes one text, truth value or number.
func (d *decoder) scalar(n *yamltree.Node, v reflect.Value, f field, path string) {
	if !d.want(n, yamltree.Scalar, path, singleHint(v.Type())) {
		return
	}
	var problem *form.Problem
	switch v.Kind() {
	case reflect.Bool:
		problem = setBool(n, v)
	case reflect.Int:
		problem = setInt(n, v)
	default:
		problem = d.setText(n, v, f)
	}
	if problem != nil {
		d.rep.at(n.Pos, path, problem.Message, problem.Hint)
		return
	}
	d.origins.add(origin{path: path, text: n.Text, leaf: true, pos: n.Pos})
}

func singleHint(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "write true or false"
	case reflect.Int:
		return "write one number"
	}
	return "write one value, after the key"
}

func setBool(n *yamltree.Node, v reflect.Value) *form.Problem {
	switch {
	case !n.Plain:
		return &form.Problem{Message: "a text where true or false belongs: " + form.Quote(n.Text), Hint: "remove the quotes"}
	case n.Text == "true" || n.Text == "false":
		v.SetBool(n.Text == "true")
		return nil
	}
	hint := "write true or false"
	switch strings.ToLower(n.Text) {
	case "yes", "on", "y", "true", "1", "enabled":
		hint = "write true"
	case "no", "off", "n", "false", "0", "disabled":
		hint = "write false"
	}
	return &form.Problem{Message: "neither true nor false: " + form.Quote(n.Text), Hint: hint}
}

// integer is the canonical decimal form: what YAML 1.1, YAML 1.2 and people
// all read alike. 017, 0x1f, 1_000 and 1e3 are not.
const integer = `^(0|-?[1-9][0-9]*)$`

func setInt(n *yamltree.Node, v reflect.Value) *form.Problem {
	if !n.Plain {
		return &form.Problem{Message: "a text where a number belongs: " + form.Quote(n.Text), Hint: "remove the quotes"}
	}
	if !regexp.MustCompile(integer).MatchString(n.Text) {
		return &form.Problem{Message: "not a whole number: " + form.Quote(n.Text), Hint: "write it in plain decimal digits, without leading zeros, underscores, exponent or unit"}
	}
	i, err := strconv.ParseInt(n.Text, 10, 32)
	if err != nil {
		return &form.Problem{Message: "the number is too large: " + form.Quote(n.Text)}
	}
	v.SetInt(i)
	return nil
}

// setText keeps the text as it is written. It is checked against the values of
// an enumeration or the form that the key's tag names, and then given to types
// that read themselves.
func (d *decoder) setText(n *yamltree.Node, v reflect.Value, f field) *form.Problem {
	if values := valuesOf(v.Type()); values != nil {
		if p := oneOf(n.Text, values); p != nil {
			return p
		}
	} else if shape, ok := d.forms[f.Form]; ok {
		if p := shape.Test(n.Text); p != nil {
			return p
		}
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(n.Text)); err != nil {
			return &form.Problem{Message: err.Error()}
		}
		return nil
	}
	v.SetString(n.Text)
	return nil
}

func oneOf(text string, values []string) *form.Problem {
	for _, v := range values {
		if v == text {
			return nil
		}
	}
	hint := "expected: " + strings.Join(values, ", ")
	if near := nearest(text, values); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return &form.Problem{Message: fmt.Sprintf("unknown value %s", form.Quote(text)), Hint: hint}
}
