// Package form knows the shapes of the texts in a profile: what a MAC address,
// a DNS label or an SSH key looks like, how to say so, and what to do about one
// that is wrong.
//
// The form tags of package cluster name the shapes. The decoder checks values
// with them, and the JSON Schema takes its patterns from them, so that an editor
// and the tool agree.
package form

import "regexp"

// Problem says what is wrong with a text and, if known, what to do about it.
type Problem struct {
	Message string // lower case, without a period; never the whole text of a secret
	Hint    string
}

// Form is the shape of a text. Pattern is a regular expression in the common
// subset of RE2 and ECMA 262, anchored at both ends. Want completes "want …".
// Check, if set, sees only texts that the pattern admits; Explain, if set, is
// asked about the ones that it does not.
type Form struct {
	Name    string
	Pattern string
	Want    string
	Check   func(text string) *Problem
	Explain func(text string) *Problem

	re *regexp.Regexp
}

// maxText bounds a value in bytes; only SSH keys come near a kilobyte.
const maxText = 2048

// Test returns what is wrong with text, or nil.
func (f Form) Test(text string) *Problem {
	if len(text) > maxText {
		return &Problem{Message: "the text is too long", Hint: "want " + f.Want}
	}
	if f.re.MatchString(text) {
		if f.Check == nil {
			return nil
		}
		return f.Check(text)
	}
	if f.Explain != nil {
		if p := f.Explain(text); p != nil {
			return p
		}
	}
	return &Problem{Message: "not " + f.Want + ": " + Quote(text)}
}

// Admits reports whether the pattern admits text; the schema asks this for texts
// that an editor's YAML takes for numbers or truth values.
func (f Form) Admits(text string) bool { return f.re.MatchString(text) }

// Table holds all forms by name.
type Table map[string]Form

// All builds the table of forms.
func All() Table {
	t := Table{}
	for _, group := range [][]Form{naming(), networking(), systemForms(), software()} {
		for _, f := range group {
			f.re = regexp.MustCompile(f.Pattern)
			t[f.Name] = f
		}
	}
	return t
}
